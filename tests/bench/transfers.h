/* The bandwidth of copies between an arena and a device. */
#pragma once

/* Prints, for every GPU, the GB/s of large copies in each direction alone and in both at once;
 * nothing on a host without one. Takes about a second a device; nothing stays open. */
void print_transfers(void);
