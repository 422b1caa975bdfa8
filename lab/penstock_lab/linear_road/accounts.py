"""What cars have paid: balances of today, and expenditures of earlier days."""

import numpy as np
import pyarrow as pa

import penstock as ps

__all__ = ["BALANCES", "BALANCE_STATE", "EXPENDITURES", "EXPENDITURE_STATE", "Balances", "Expenditures"]

BALANCE_STATE = "balance bigint, pending int"
BALANCES = "qid int, balance bigint"
EXPENDITURE_STATE = "toll int"
EXPENDITURES = "qid int, expenditure int"


class Balances(ps.Processor):
    """The balance of a car when it asks.

    A car that enters a segment is told the toll, which waits until the car goes on to the next segment and is
    charged then. A car that leaves by the exit ramp, or is on another trip, does not pay for the segment in
    which it was last. Rows are entries into segments, and queries, which have a `qid`.
    """

    def step(self, block: ps.Block) -> ps.Outcome:
        """Charges are those tolls whose next entry goes on; a balance is the sum of charges so far."""
        entry = block.rows["qid"].to_numpy() < 0
        toll, goes_on = (block.rows[name].to_numpy() for name in ("toll", "goes_on"))
        number = np.arange(len(entry))
        # The last entry before each event, and at or before it; -1 is what the state has.
        until = np.maximum.accumulate(np.where(entry, number, -1))
        until = np.where(until < block.first[block.groups], -1, until)
        before = np.append(-1, until[:-1])
        before[block.first] = -1
        pending, balance = (block.state[name].fill_null(0).to_numpy() for name in ("pending", "balance"))
        waiting = np.where(before < 0, pending[block.groups], toll[before])
        charged = np.where(entry & goes_on, waiting, 0).astype(np.int64)
        charged[block.first] += balance
        total = np.cumsum(charged)
        total -= (total - charged)[block.first][block.groups]
        asks = np.flatnonzero(~entry)
        left = np.where(until < 0, pending[block.groups], toll[until])[block.last]
        return ps.Outcome(
            results=pa.table({"qid": block.rows["qid"].take(pa.array(asks)), "balance": total[asks]}),
            at=asks,
            state=pa.table({"balance": total[block.last], "pending": left}),
        )


class Expenditures(ps.Processor):
    """What a car has paid on a day on an expressway: rows of the history, and queries, which have a `qid`."""

    def step(self, block: ps.Block) -> ps.Outcome:
        """The sum of the history's rows, 0 if there are none."""
        query = block.rows["qid"].to_numpy() >= 0
        paid = np.where(query, 0, block.rows["toll"].to_numpy()).astype(np.int64)
        paid[block.first] += block.state["toll"].fill_null(0).to_numpy()
        total = np.cumsum(paid)
        total -= (total - paid)[block.first][block.groups]
        asks = np.flatnonzero(query)
        state = total[block.last]
        return ps.Outcome(
            results=pa.table({"qid": block.rows["qid"].take(pa.array(asks)), "expenditure": total[asks]}),
            at=asks,
            state=pa.table({"toll": state}),
            keep=np.bincount(block.groups, ~query) + block.known > 0,
        )
