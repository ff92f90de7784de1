# Erda's machines (ER, its machines): ConnectX-3, 40 Gbit/s InfiniBand, two CPUs of 4 cores at 2.4 GHz, DRAM in the place of PM
# with 150 ns more for each write. Its public code waits for completions by interrupts.
cpus        8      # ER, its machines: two CPUs of 4 cores
wire        5000   # ER, its machines: 40 Gbit/s
flight      555    # public table of ib_send_lat: 0.83 us one way for 32 bytes, less post, doorbell, land and poll
dma         250    # the same table: 2.3 us one way for 4 KB, less those 0.83 us and the wire, for each byte of a packet
packet      92     # SV: 10.9 million READs a second of one thread
crc         1070   # EF Fig. 1, on CPUs of the same clock: 4.4 us for 4 KB
copy        206    # fit of RK: 13.5 us for 64 KB, less 4.7 us that all take
fence       150    # ER, its machines: 150 ns for each write to NVM
flush_line  20     # a line's write-back, a fraction of a fence; no paper has it
handle      1500   # 1 to 2 us for a message of a lean server: EF Fig. 1, RPC against CA
wake        31000  # ER: 62.84 us for a GET of two READs, so 31 us for a completion
