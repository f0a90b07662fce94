/** Decides which IP addresses are public; the address guard allows only these. */
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = [start: Address, bits: number]

/** IANA's registry of special-purpose IPv4 addresses, less those that lead to ordinary public services. */
const CLOSED_V4 = networks(
  '0.0.0.0/8', // this network; 0.0.0.0 itself reaches the own machine
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared by a carrier's customers; also where some clouds keep their metadata
  '127.0.0.0/8', // the own machine
  '168.63.129.16/32', // looks public, but is the platform service of one large cloud, keys and all
  '169.254.0.0/16', // link-local; 169.254.169.254 is the metadata service of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; 192.0.0.192 is a metadata service
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4, given up
  '192.168.0.0/16', // private
  '198.18.0.0/15', // measurements
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, with the broadcast address at its end
)

/** All that IPv6 uses for the public internet so far; whatever lies outside is refused without being named. */
const OPEN_V6 = network('2000::/3')

/** Within it: what leads elsewhere than it says, or nowhere. */
const CLOSED_V6 = networks(
  '2001::/23', // protocol assignments, with Teredo (2001::/32), which carries an IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which carries an IPv4 address
  '3fff::/20', // documentation
)

/** An IPv4 address as a network with IPv6 only sees it (RFC 6052): as public as what it carries. */
const NAT64 = network('64:ff9b::/96')

/** Whether an address belongs to the public internet. Anything that is not an address is not public. */
export function isPublicAddress(text: string): boolean {
  const address = parse(text)
  if (!address) return false
  if (address.kind() === 'ipv4') return !CLOSED_V4.some((closed) => isWithin(address, closed))
  if (isWithin(address, NAT64)) return isPublicAddress(address.toByteArray().slice(12).join('.'))
  return isWithin(address, OPEN_V6) && !CLOSED_V6.some((closed) => isWithin(address, closed))
}

/**
 * Whether a URL's host leads into a private network by itself, without asking DNS: an address that is not public, or a
 * name of the own machine (RFC 6761).
 */
export function isPrivateHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '') // IPv6 hosts are in brackets
  return readAddress(host) ? !isPublicAddress(host) : /(^|\.)localhost\.?$/.test(host)
}

/** Whether a URL's host is this machine: 127.0.0.0/8, ::1, or a name of the own machine (RFC 6761). */
export function isLoopbackHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return (
    host === '::1' || (readAddress(host)?.length === 4 && host.startsWith('127.')) || /(^|\.)localhost\.?$/.test(host)
  )
}

/**
 * The bytes of an address, 4 or 16, in its usual notation: `a.b.c.d` in decimal, or IPv6, which may end with such an IPv4
 * address. Undefined for anything else: a name, another notation, an address with a zone (`fe80::1%eth0`).
 */
export const readAddress = (text: string): readonly number[] | undefined => parse(text)?.toByteArray()

/** A range of addresses as `203.0.113.0/24`, from an address or a range; undefined for anything else. */
export function canonicalNetwork(text: string): string | undefined {
  const [head = '', tail, more] = text.trim().split('/')
  const address = parse(head)
  if (!address || more !== undefined || (tail !== undefined && !/^\d{1,3}$/.test(tail))) return undefined
  const most = address.kind() === 'ipv4' ? 32 : 128
  const bits = tail === undefined ? most : Number(tail)
  if (bits > most) return undefined
  const plain = plainAddress(address)
  // A range of IPv4 addresses in the notation of IPv6 is one of IPv4.
  const isMapped = plain.kind() !== address.kind()
  if (isMapped && bits < 96) return undefined
  const length = isMapped ? bits - 96 : bits
  const network = plain.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  return `${network.networkAddressFromCIDR(`${plain}/${length}`)}/${length}`
}

/**
 * Whether an address is in one of these ranges. An IPv4 address is the same in the notation of IPv6; a zone, and a port
 * that a proxy has added, do not count.
 */
export function networkMatcher(texts: readonly string[]): (address: string) => boolean {
  const ranges = texts.map(network)
  return (text) => {
    const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? []
    const [, v4] = /^([\d.]+):\d+$/.exec(text) ?? []
    const [bare = ''] = (bracketed ?? v4 ?? text).split('%')
    const parsed = parse(bare)
    if (!parsed) return false
    const address = plainAddress(parsed)
    return ranges.some((range) => isWithin(address, range))
  }
}

/** IPv4 as a socket for both shows it (`::ffff:192.0.2.1`) as IPv4. */
const plainAddress = (address: Address): Address =>
  address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address

function parse(text: string): Address | undefined {
  // The library's lenient parser would accept octal, hexadecimal and short forms.
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  const hasZone = text.includes('%')
  return text.includes(':') && !hasZone && ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined
}

/** `match` throws for an address of the other family. */
const isWithin = (address: Address, [start, bits]: Network): boolean =>
  address.kind() === start.kind() && address.match(start, bits)

function network(text: string): Network {
  return ipaddr.parseCIDR(text)
}

function networks(...texts: string[]): Network[] {
  return texts.map(network)
}
