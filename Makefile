# gpuds: GPU index access methods for PostgreSQL
#
#   make [CUDA=no] [NVCC=...] [PG_CONFIG=...]   build
#   make install                                install (root)
#   make installcheck                           regression tests on a running server
#
# WERROR=1 makes warnings errors, STOP_POINTS=1 compiles in the stop points
# that the concurrency tests hold backends at.

MODULE_big = gpuds
EXTENSION = gpuds
DATA = src/gpuds--0.1.0.sql
PGFILEDESC = "gpuds - index access methods whose search structures live on a GPU"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

REGRESS_OPTS = --inputdir=. --outputdir=.
REGRESS = $(sort $(basename $(notdir $(wildcard sql/*.sql))))

PG_CPPFLAGS = -I$(srcdir) -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -O3 -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wno-clobbered
ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef STOP_POINTS
PG_CPPFLAGS += -DGPUDS_STOP_POINTS
endif

# Bitcode would only serve JIT inlining of functions that no expression calls.
override with_llvm = no

NVCC ?= $(shell command -v nvcc 2>/dev/null)
ifeq ($(filter clean distclean,$(MAKECMDGOALS)),)
ifeq ($(CUDA),no)
$(info gpuds: CUDA=no, building for the CPU device only)
else ifeq ($(NVCC),)
$(info gpuds: nvcc was not found, building for the CPU device only)
endif
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard kernels/*.h src/*.h src/*/*.h)
