# eFactory's machines (EF, its machines): ConnectX-5, 100 Gbit/s InfiniBand, two CPUs of 10 cores at 2.4 GHz, DRAM in the place of
# PM with no delay. "fit": no paper has it; it follows from the figures that are named.
cpus        20     # EF, its machines: two CPUs of 10 cores
wire        12500  # EF, its machines: 100 Gbit/s
flight      555    # public table of ib_send_lat: 0.83 us one way for 32 bytes, less post, doorbell, land and poll
dma         250    # the same table: 2.3 us one way for 4 KB, less those 0.83 us and the wire, for each byte of a packet
packet      92     # SV: 10.9 million READs a second of one thread
crc         1070   # EF Fig. 1: 4.4 us for 4 KB
copy        206    # fit of RK: 13.5 us for 64 KB, less 4.7 us that all take; the CPUs are alike
fence       100    # the least of 100 to 150 ns that fit RK and ER; EF adds no delay
flush_line  20     # a line's write-back, a fraction of a fence; no paper has it
handle      1500   # 1 to 2 us for a message of a lean server: EF Fig. 1, RPC against CA
