"""What users write as Spark SQL: types, schemas, durations, scalar expressions and conditions over pairs."""
