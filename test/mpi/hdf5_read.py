# SPDX-License-Identifier: BSD-3-Clause
# Open a file of hdf5_slab as h5py's users do, with HDF5's file locking on, and check every element;
# then append a dataset to it and read that back. hdf5_read.py FILE
import os
import sys

os.environ["HDF5_USE_FILE_LOCKING"] = "TRUE"
import h5py
import numpy

with h5py.File(sys.argv[1], "r") as f:
    field = f["field"]
    want = numpy.arange(field.shape[0])[:, None] * 1000 + numpy.arange(field.shape[1])
    if field.shape != (240, 500) or (field[...] != want).any():
        sys.exit("wrong elements in " + sys.argv[1])
    if (field[7:200:13, 3:490:7] != want[7:200:13, 3:490:7]).any():
        sys.exit("wrong elements in a selection of " + sys.argv[1])

with h5py.File(sys.argv[1], "r+") as f:
    f.create_dataset("sums", data=want.sum(axis=1))
    f["field"].attrs["checked"] = 1
with h5py.File(sys.argv[1], "r") as f:
    if (f["sums"][...] != want.sum(axis=1)).any() or f["field"].attrs["checked"] != 1:
        sys.exit("what was appended to " + sys.argv[1] + " did not stay")
