/** Decides which IP addresses are public; the address guard allows only these. */

/** The bytes of an address: 4 of IPv4, 16 of IPv6. */
type AddressBytes = readonly number[]

type Network = { bytes: AddressBytes; bits: number }

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

/** Whether an address belongs to the public internet. What is no address is not public. */
export function isPublicAddress(address: string): boolean {
  const bytes = readAddress(address)
  if (!bytes) return false
  if (bytes.length === 4) return !CLOSED_V4.some((closed) => isWithin(bytes, closed))
  if (isWithin(bytes, NAT64)) return isPublicAddress(bytes.slice(12).join('.'))
  return isWithin(bytes, OPEN_V6) && !CLOSED_V6.some((closed) => isWithin(bytes, closed))
}

/**
 * The bytes of an address in the customary writing: `a.b.c.d` in decimal, or IPv6, also with such an IPv4 end.
 * Undefined for anything else: a name, another spelling, an address with a zone (`fe80::1%eth0`).
 */
export function readAddress(text: string): AddressBytes | undefined {
  return text.includes(':') ? readV6(text) : readV4(text)
}

function readV4(text: string): AddressBytes | undefined {
  const parts = text.split('.')
  // No sign, no leading zero (elsewhere it means octal), at most three digits.
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return
  return parts.map(Number)
}

function readV6(text: string): AddressBytes | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return
  const [head, tail] = halves.map((half, index) => readGroups(half, index === halves.length - 1))
  if (!head || (halves.length === 2 && !tail)) return
  if (!tail) return head.length === 16 ? head : undefined
  const missing = 16 - head.length - tail.length
  return missing < 2 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/** Groups of up to four hexadecimal digits; the last may be an IPv4 address where the address ends. */
function readGroups(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [index, group] of groups.entries()) {
    if (group.includes('.')) {
      const v4 = isEnd && index === groups.length - 1 ? readV4(group) : undefined
      if (!v4) return
      bytes.push(...v4)
    } else {
      if (!/^[0-9a-f]{1,4}$/i.test(group)) return
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 0xff)
    }
  }
  return bytes
}

function isWithin(bytes: AddressBytes, { bytes: start, bits }: Network): boolean {
  if (bytes.length !== start.length) return false
  return start.every((byte, index) => {
    const counted = Math.min(8, Math.max(0, bits - index * 8))
    const mask = (0xff << (8 - counted)) & 0xff
    return ((bytes[index] ?? 0) & mask) === (byte & mask)
  })
}

function network(text: string): Network {
  const [address = '', bits = ''] = text.split('/')
  const bytes = readAddress(address)
  if (!bytes) throw new Error(`"${text}" is no network.`)
  return { bytes, bits: Number(bits) }
}

function networks(...texts: string[]): Network[] {
  return texts.map(network)
}
