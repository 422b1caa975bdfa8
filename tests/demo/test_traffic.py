from penstock.demo.traffic import traffic


def test_the_result_has_the_columns_that_the_demo_reads(tmp_path):
    schema = traffic(tmp_path).schema
    assert schema.names == ("window_start", "window_end", "area", "reports", "mean", "top", "jam")
