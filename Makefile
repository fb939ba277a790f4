# gpuds: GPU index access methods for PostgreSQL
#
#   make [CUDA=no] [NVCC=...] [PG_CONFIG=...]   build
#   make install                                install (root)
#   make installcheck                           regression tests on a running server
#
# gpuds_cuda.so, the library that the device worker loads, is built where nvcc is
# found: for the cards of CUDA_ARCHS that this nvcc knows, with PTX for later ones.
# CUDA=no leaves it out; CUDA=emulated makes one for tests that needs no GPU.
#
# WERROR=1 makes warnings errors, INJECTION_POINTS=1 compiles in the injection points
# that the concurrency tests hold backends at.  SANITIZE="-fsanitize=..." is for builds
# that find their own faults (test/sanitize.sh): a server must be told to load the
# sanitizers' libraries first.

MODULE_big = gpuds
EXTENSION = gpuds
DATA = src/gpuds--0.1.0.sql src/gpuds--0.1.0--0.2.0.sql src/gpuds--0.2.0.sql
PGFILEDESC = "gpuds - index access methods whose search structures live on a GPU"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c kernels/*/*.c)))

REGRESS_OPTS = --inputdir=. --outputdir=. --launcher=$(srcdir)/test/plans
REGRESS = $(sort $(basename $(notdir $(wildcard sql/*.sql))))

PG_CPPFLAGS = -I$(srcdir) -I$(srcdir)/src
PG_CFLAGS = -std=gnu11 -O3 -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wno-clobbered
ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef INJECTION_POINTS
PG_CPPFLAGS += -DGPUDS_INJECTION_POINTS
endif
ifdef SANITIZE
PG_CFLAGS += $(SANITIZE)
SHLIB_LINK += $(SANITIZE)
endif

# Bitcode would only serve JIT inlining of functions that no expression calls.
override with_llvm = no

NVCC ?= $(firstword $(shell command -v nvcc /usr/local/cuda/bin/nvcc 2>/dev/null))
CUDA_ARCHS ?= 80 86 89 90 100 120
ENGINE = gpuds_cuda.so
EXTRA_CLEAN = $(ENGINE) kernels/engine/engine.o
ifeq ($(CUDA),no)
ENGINE =
else ifneq ($(CUDA),emulated)
ifeq ($(NVCC),)
ENGINE =
endif
endif
ifeq ($(filter clean distclean,$(MAKECMDGOALS)),)
ifeq ($(CUDA),no)
$(info gpuds: CUDA=no, building for the CPU device only)
else ifeq ($(ENGINE),)
$(info gpuds: nvcc was not found, building for the CPU device only)
endif
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard kernels/*.h kernels/*/*.h src/*.h src/*/*.h test/structures/*.h)

ENGINE_SOURCE = $(srcdir)/kernels/engine/engine.cu
ENGINE_FLAGS = -std=c++17 -O3 -I$(srcdir) $(if $(INJECTION_POINTS),-DGPUDS_INJECTION_POINTS) $(SANITIZE)
ENGINE_WARNINGS = -Wall -Wextra $(if $(WERROR),-Werror)

ifneq ($(ENGINE),)
all: $(ENGINE)
install: install-engine
uninstall: uninstall-engine
endif

ifeq ($(CUDA),emulated)
# gcc 16 does not see that of a list only as much is read as was written
ENGINE_WARNINGS += -Wno-maybe-uninitialized
kernels/engine/engine.o: $(ENGINE_SOURCE) $(wildcard $(addprefix $(srcdir)/,kernels/*.h kernels/*/*.h test/structures/*.h))
	$(CXX) -x c++ $(ENGINE_FLAGS) $(ENGINE_WARNINGS) -DGPU_EMULATED -g -fPIC -fvisibility=hidden -pthread -c -o $@ $<
$(ENGINE): kernels/engine/engine.o
	$(CXX) $(SANITIZE) -shared -pthread -o $@ $<
else
known := $(if $(ENGINE),$(shell $(NVCC) --list-gpu-arch 2>/dev/null))
archs := $(foreach arch,$(CUDA_ARCHS),$(if $(filter compute_$(arch),$(known)),$(arch)))
targets := $(foreach arch,$(archs),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	$(foreach arch,$(lastword $(archs)),-gencode arch=compute_$(arch),code=compute_$(arch))
comma := ,
empty :=
space := $(empty) $(empty)

$(ENGINE): $(ENGINE_SOURCE) $(wildcard $(addprefix $(srcdir)/,kernels/*.h kernels/*/*.h test/structures/*.h))
	$(NVCC) $(ENGINE_FLAGS) $(if $(WERROR),-Werror all-warnings) $(targets) --threads 0 -cudart static -shared \
		-Xcompiler -fPIC,-fvisibility=hidden,$(subst $(space),$(comma),$(strip $(ENGINE_WARNINGS))) \
		-Xlinker --exclude-libs,ALL -o $@ $<
endif

.PHONY: install-engine uninstall-engine
install-engine: $(ENGINE) installdirs
	$(INSTALL_SHLIB) $(ENGINE) '$(DESTDIR)$(pkglibdir)/$(ENGINE)'
uninstall-engine:
	rm -f '$(DESTDIR)$(pkglibdir)/$(ENGINE)'
