import numpy as np

from penstock.sketches.splitmix import splitmix64


def test_words_are_those_of_the_published_generator():
    # The first outputs of SplitMix64 from state 0.
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert splitmix64(np.arange(4, dtype=np.uint64)).tolist() == expected


def test_seeds_give_other_words_and_no_two_inputs_the_same():
    words = [splitmix64(np.arange(100_000, dtype=np.uint64), seed) for seed in (0, 1, 2**63)]
    assert len(np.unique(np.concatenate(words))) == 300_000


def test_every_bit_of_the_output_is_set_half_of_the_time():
    words = splitmix64(np.arange(100_000, dtype=np.uint64), seed=5)
    shares = [np.mean((words >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]
    assert np.abs(np.array(shares) - 0.5).max() < 0.01
