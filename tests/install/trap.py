"""The end of the world for a machine without a network: a default route into this process.

Every packet that anything in this network namespace sends anywhere but to itself arrives here, is
told apart and kept. Nothing is answered, so a program that tries to leave the host waits, as it would
behind a firewall that drops; and the name server of the machine is such an address, so a look-up of a
name from outside counts as well. What the kernel itself sends because an interface came up (ICMPv6's
router and group messages) is left out."""

import fcntl
import ipaddress
import os
import struct
import subprocess
import threading

INTERFACE = "nowhere"
NAME_SERVER = "192.0.2.53"  # RFC 5737: for documentation, so in use nowhere.
ADDRESSES = ("192.0.2.2/24", "2001:db8::2/64")
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}
# RFC 4861 and RFC 3810: router and neighbour discovery, group reports.
KERNELS_OWN_ICMPV6 = frozenset([130, 131, 132, 133, 134, 135, 136, 143])
HOP_BY_HOP = 0

# linux/if_tun.h
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000


class Trap:
    """Takes what would leave the host. It needs a network namespace of its own."""

    def __init__(self):
        self.seen = []
        self._lock = threading.Lock()
        self._device = os.open("/dev/net/tun", os.O_RDWR)
        request = struct.pack("16sH", INTERFACE.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(self._device, _TUNSETIFF, request.ljust(40, b"\0"))
        commands = [f"addr add {address} dev {INTERFACE}" for address in ADDRESSES]
        commands += ["link set lo up", f"link set {INTERFACE} up"]
        commands += [f"{family} route add default dev {INTERFACE}" for family in ("-4", "-6")]
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True, stdin=subprocess.DEVNULL)
        threading.Thread(target=self._read, name="trap", daemon=True).start()

    def take(self):
        """What arrived since the last call: sentences, oldest first."""
        with self._lock:
            seen, self.seen = self.seen, []
        return seen

    def _read(self):
        while True:
            told = describe(os.read(self._device, 65_536))
            if told:
                with self._lock:
                    self.seen.append(told)


def describe(packet):
    """Where a packet was going, or None for what the kernel sends of itself."""
    if not packet:
        return None
    if packet[0] >> 4 == 4:
        protocol, target = packet[9], packet[16:20]
        payload = packet[4 * (packet[0] & 0x0F) :]
    else:
        protocol, target, payload = packet[6], packet[24:40], packet[40:]
        if protocol == HOP_BY_HOP:
            protocol, payload = payload[0], payload[8 * (payload[1] + 1) :]
        if protocol == 58 and payload[:1] and payload[0] in KERNELS_OWN_ICMPV6:
            return None
    told = f"{PROTOCOLS.get(protocol, protocol)} to {ipaddress.ip_address(target)}"
    if protocol in (6, 17) and len(payload) >= 4:
        port = int.from_bytes(payload[2:4], "big")
        told += f" port {port}"
        if (protocol, port) == (17, 53):
            told += f", asking for {question(payload[8:])}"
    return told


def question(query):
    """The name that a DNS query asks for (RFC 1035, section 4.1.2)."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels) or "?"
