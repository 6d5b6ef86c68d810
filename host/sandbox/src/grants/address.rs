//! Which addresses are the public internet. A name that the operator granted may resolve to
//! anything, so the decision falls on the address that is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What makes an address special; none for an address of the public internet.
pub fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [127, ..] => Some("loopback"),
        [10, ..] | [192, 168, ..] => Some("private"),
        [172, 16..=31, ..] => Some("private"),
        // The metadata services of the clouds are here.
        [169, 254, ..] => Some("link-local"),
        [100, 64..=127, ..] => Some("carrier-grade"),
        // The same on Azure, among public addresses.
        [168, 63, 129, 16] => Some("metadata"),
        [192, 0, 0, _] => Some("reserved"),
        [192, 88, 99, _] => Some("relay"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("documentation"),
        [198, 18..=19, ..] => Some("benchmark"),
        [224..=239, ..] => Some("multicast"),
        [240..=255, ..] => Some("reserved"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(v4) = embedded_v4(address) {
        return special_v4(v4);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        // Written like IPv4 and long gone; whoever uses it means to get around a rule.
        [0, 0, 0, 0, 0, 0, ..] => Some("reserved"),
        [0x64, 0xff9b, ..] => Some("translated"),
        [0x100, 0, 0, 0, ..] => Some("discard"),
        [0x2001, 0, ..] => Some("tunnel"),
        // Set aside for protocols: benchmarks, identifiers that are no addresses, relays.
        [0x2001, 1..=0x1ff, ..] => Some("reserved"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("documentation"),
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        // Only 2000::/3 is handed out.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, NAT64, 6to4, ISATAP.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => from(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => from(high, low),
        [0x2002, high, low, ..] => from(high, low),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => from(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::special;

    #[test]
    fn the_table() {
        for (address, expected) in [
            ("1.1.1.1", None),
            ("172.15.255.255", None),
            ("172.32.0.1", None),
            ("100.63.255.255", None),
            ("2606:4700::1111", None),
            ("::ffff:1.1.1.1", None),
            ("64:ff9b::1.1.1.1", None),
            ("0.0.0.0", Some("unspecified")),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("10.1.2.3", Some("private")),
            ("172.16.0.1", Some("private")),
            ("192.168.1.1", Some("private")),
            ("169.254.169.254", Some("link-local")),
            ("168.63.129.16", Some("metadata")),
            ("168.63.129.17", None),
            ("100.64.0.1", Some("carrier-grade")),
            ("198.18.0.1", Some("benchmark")),
            ("224.0.0.1", Some("multicast")),
            ("255.255.255.255", Some("reserved")),
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("::127.0.0.1", Some("reserved")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:169.254.169.254", Some("link-local")),
            ("64:ff9b::10.0.0.1", Some("private")),
            ("64:ff9b:1::1", Some("translated")),
            ("2002:7f00:1::", Some("loopback")),
            ("2001::1", Some("tunnel")),
            ("2001:2::1", Some("reserved")),
            ("2001:20::1", Some("reserved")),
            ("2001:200::1", None),
            ("3fff::1", Some("documentation")),
            ("2606:4700::5efe:10.0.0.1", Some("private")),
            ("::ffff:0:127.0.0.1", Some("reserved")),
            ("fd00:ec2::254", Some("private")),
            ("fe80::1", Some("link-local")),
            ("ff02::1", Some("multicast")),
            ("4000::1", Some("reserved")),
        ] {
            assert_eq!(special(address.parse().expect(address)), expected, "{address}");
        }
    }
}
