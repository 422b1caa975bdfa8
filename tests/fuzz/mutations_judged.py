"""Mutants that survive and that a person has judged: why no row can depend on the change.

The key is file, function, kind and the text before the change, so that a moved line stays judged.
"""

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "compile/rewrite.py",
        "_Sinking._through_costly",
        "statement removed",
        "moved[place].append(Where(condition))",
    ): "no condition moves then, and all stay after the operator: only work is lost",
    (
        "state/keys.py",
        "ordered",
        "not dropped",
        "not same_keys(*_neighbours(keys, order, ~changes)).all()",
    ): "rows are ordered by the keys themselves, as for hashes that collide, which is right and slower",
    (
        "functions/translation.py",
        "_applied",
        "comparison",
        "len(sql) > _LONGEST",
    ): "a text of exactly the longest length goes to Spark, which gives the same",
    (
        "operators/joins/condition/matching.py",
        "_shared_apart",
        "comparison",
        "(high - low) * len(group.probe) * 2 > group.pairs",
    ): "both ways compare the same pairs; which one is taken is a matter of cost",
    (
        "runtime/epoch.py",
        "Epoch._run_levels",
        "arguments swapped",
        "Failing(self.epoch_id.epoch, self._reading())",
    ): "only the words of an error that ends the run",
    (
        "compile/channels.py",
        "channels_of",
        "first condition dropped",
        "costs or {}",
    ): "how many channels each stage has, on which no row depends",
    (
        "expressions/conditions.py",
        "_comparable",
        "and for or",
        "None in kinds or len(set(kinds)) == 1",
    ): "comparisons of strings or dates count as ones that may raise: conditions stay where they are",
    (
        "expressions/conditions.py",
        "parts_of",
        "branch removed",
        "if isinstance(tree, exp.Paren) and isinstance(tree.this, (exp.And, exp.Paren)):",
    ): "a condition in parentheses stays whole where it is written: only work is lost",
    (
        "runtime/graph.py",
        "_Building._lead",
        "branch always taken",
        "if kernel.judges:",
    ): "rows are kept for a second look that no stage takes",
    (
        "runtime/moving.py",
        "Moving.run",
        "operator",
        "time.perf_counter() - began",
    ): "how long a move took, for people",
    (
        "compile/stages.py",
        "_folded",
        "statement removed",
        "notes.append(f'{shown} folded into the load balancer of {origin_of(feed)} towards {where}')",
    ): "words of a plan",
    (
        "routing/spark_hash.py",
        "_bytes",
        "operator",
        "size // 32 * 4",
    ): "another hash, the same for equal keys; tests of routing hold it against Spark's",
    (
        "state/pane_table.py",
        "OpenPaneTable._read",
        "arguments swapped",
        "max(1, segment.level)",
    ): "the greater of two numbers",
    (
        "expressions/conditions.py",
        "_comparable",
        "first condition dropped",
        "None in kinds or len(set(kinds)) == 1",
    ): "an unknown type is no number either, so the last line says no as well",
    (
        "expressions/conditions.py",
        "_has_value",
        "branch removed",
        "if isinstance(node, COMPARISONS):",
    ): "no comparison counts as total then, and conditions stay where they are: only work is lost",
    (
        "routing/window_channels.py",
        "_deliveries",
        "off by one",
        "1 in counts = np.where(last >= own, np.minimum(other - one + 1, channels), 0)",
    ): "a row goes to one more channel, which computes none of its windows and leaves it out",
    (
        "operators/steps.py",
        "Map.call",
        "swapped",
        "[*self.kept, *carried]",
    ): "the columns are selected by name in the end",
    (
        "runtime/graph.py",
        "_Building._output_schema",
        "branch removed",
        "if isinstance(feed.origin, int) and (not feed.outside):",
    ): "Spark's analyzer tells the same types of the same steps",
    (
        "functions/translation.py",
        "_Translation._cast",
        "and for or",
        "wanted == 'double' or (wanted == 'bigint' and types.is_integer(given.type))",
    ): "a literal is cast like a column, or by Spark, to the same value",
    (
        "distribution/cost_columns.py",
        "CostColumns.sampled",
        "last condition dropped",
        "self.found or not self.candidates",
    ): "channels measure no row where there is no candidate",
    (
        "distribution/key_steering.py",
        "KeySteering._stepped",
        "and for or",
        "layout.target == before.router and spread == placed",
    ): "state stays where it is: a request is not followed, and any layout gives the same rows",
    (
        "distribution/two_choices.py",
        "LessLoaded.place",
        "off by one",
        "1 in first, second = ring.route(hashes), ring.route(splitmix64(hashes, seed=1))",
    ): "another second channel of a key: its partials may be formed in any",
    (
        "query/sql/ranking.py",
        "first_rows",
        "last condition dropped",
        "window is None or len(keys) == len(parts)",
    ): "only a refusal is lost, and programs that are refused are not drawn",
    (
        "expressions/pairs.py",
        "PairCondition.of_side",
        "first condition dropped",
        "columns and all((each.parts[0].name == side for each in columns))",
    ): "a part without columns is the same for all pairs: a row that it stops has no partner anyway",
    (
        "compile/rewrite.py",
        "_Sinking._below",
        "branch removed",
        "if isinstance(relation, Derived) and self.readers[relation] == 1:",
    ): "no condition moves, and all stay where they are written: only work is lost",
    (
        "compile/channels.py",
        "is_single",
        "first condition dropped",
        "stage.host is None and stage.operator.why_single() is not None",
    ): "a stage in the channels of another has keys, and with keys none is single",
    (
        "runtime/epoch.py",
        "Epoch._refused",
        "branch removed",
        "if self.works.refusals is None:",
    ): "without a place for them no task sets refused rows aside: the record is empty and says nothing",
    (
        "state/views.py",
        "_remember",
        "off by one",
        "1 in while _held > _MOST_BYTES and len(_bits) > 1:",
    ): "how much is remembered of what can be read again",
    (
        "operators/joins/condition/matching.py",
        "Matcher._decided",
        "off by one",
        "0 in doubt = doubt[possible(FormedPairs(left[doubt], right[doubt]), 0)]",
    ): "the number of a buffer, of which formed pairs have none: each array is a new one",
}
