# RDMP-KV's machines (RK, its machines): EDR InfiniBand, 100 Gbit/s, a RAM disk in the place of PM with 150 ns for each write and
# fence and 4 GB/s; Pmem-Redis, whose server is one thread.
cpus        1      # RK, its machines: the server of Pmem-Redis is one thread
wire        12500  # RK, its machines: 100 Gbit/s
flight      555    # public table of ib_send_lat: 0.83 us one way for 32 bytes, less post, doorbell, land and poll
dma         250    # the same table: 2.3 us one way for 4 KB, less those 0.83 us and the wire, for each byte of a packet
packet      92     # SV: 10.9 million READs a second of one thread
copy        206    # fit of RK: HERD's 34.6 us for 64 KB, less 16.4 us at 4 GB/s and 4.7 us that all take
fence       150    # RK, its machines: 150 ns for each fence
pm_write    4000   # RK, its machines: 4 GB/s
handle      4700   # fit of RK: 21.1 us of SA's server for a PUT of 64 KB, less 16.4 us at 4 GB/s
