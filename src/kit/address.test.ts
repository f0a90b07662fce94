import { describe, expect, test } from 'bun:test'
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { canonicalNetwork, isPublicAddress, networkMatcher, readAddress } from './address.ts'

/** The same ranges, said a second time and checked by the runtime: first and last address of each. */
const CLOSED_V4: [string, string][] = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['168.63.129.16', '168.63.129.16'],
  ['169.254.0.0', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '255.255.255.255'],
]
const CLOSED_V6: [string, string][] = [
  ['::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
]

const numberOf = (v4: string) => v4.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
const v4Of = (value: number) => [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
const closedV4 = (address: string) =>
  CLOSED_V4.some(([first, last]) => numberOf(first) <= numberOf(address) && numberOf(address) <= numberOf(last))

const closedV6 = new BlockList()
for (const [first, last] of CLOSED_V6) closedV6.addRange(first, last, 'ipv6')

const v6Of = (groups: number[]) => groups.map((group) => group.toString(16)).join(':')
const step = (v6: string, by: 1 | -1) => {
  let value = 0n
  for (const byte of readAddress(v6) ?? []) value = value * 256n + BigInt(byte)
  const moved = value + BigInt(by)
  return v6Of(Array.from({ length: 8 }, (_, index) => Number((moved >> BigInt((7 - index) * 16)) & 0xffffn)))
}

describe('IPv4', () => {
  for (const [first, last] of CLOSED_V4) {
    test(`${first} to ${last} is not public, and its neighbours are`, () => {
      expect(isPublicAddress(first)).toBe(false)
      expect(isPublicAddress(last)).toBe(false)
      for (const beside of [v4Of(numberOf(first) - 1), v4Of(numberOf(last) + 1)]) {
        if (first !== '0.0.0.0' && last !== '255.255.255.255') expect(isPublicAddress(beside)).toBe(!closedV4(beside))
      }
    })
  }

  test('an address is public exactly if an independent list of ranges does not contain it', () => {
    // Half of them near an edge, where mistakes are.
    const edges = CLOSED_V4.flatMap((pair) => pair.map(numberOf))
    const near = fc
      .tuple(fc.constantFrom(...edges), fc.integer({ min: -2, max: 2 }))
      .map(([edge, off]) => Math.min(2 ** 32 - 1, Math.max(0, edge + off)))
    fc.assert(
      fc.property(fc.oneof(near, fc.integer({ min: 0, max: 2 ** 32 - 1 })), (value) => {
        expect(isPublicAddress(v4Of(value))).toBe(!closedV4(v4Of(value)))
      }),
      { numRuns: 2000 },
    )
  })

  test('well-known public addresses are public', () => {
    for (const address of ['1.1.1.1', '8.8.8.8', '93.184.216.34', '172.15.255.255', '172.32.0.0', '100.128.0.0']) {
      expect([address, isPublicAddress(address)]).toEqual([address, true])
    }
  })
})

describe('IPv6', () => {
  const closed = [
    '::',
    '::1',
    '::7f00:1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:db8::1',
    '2002:7f00:1::1',
    '2002:808:808::1',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fec0::1',
    'ff02::1',
  ]
  for (const address of closed) {
    test(`${address} is not public`, () => expect(isPublicAddress(address)).toBe(false))
  }

  test('ordinary addresses are public', () => {
    for (const address of ['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:80b::200e', '2003::1']) {
      expect([address, isPublicAddress(address)]).toEqual([address, true])
    }
  })

  test('every range has the right first and last address', () => {
    for (const [first, last] of CLOSED_V6) {
      expect([first, isPublicAddress(first)]).toEqual([first, false])
      expect([last, isPublicAddress(last)]).toEqual([last, false])
      if (first !== '::') expect(isPublicAddress(step(first, -1))).toBe(!closedV6.check(step(first, -1), 'ipv6'))
      if (!last.startsWith('ffff')) expect(isPublicAddress(step(last, 1))).toBe(!closedV6.check(step(last, 1), 'ipv6'))
    }
  })

  test('an address is public exactly if an independent list of ranges does not contain it', () => {
    const firstGroup = fc.oneof(
      fc.constantFrom(0x2001, 0x2002, 0x2003, 0x3fff, 0x2000, 0x1fff, 0x4000, 0xfe80, 0xfc00, 0xff02),
      fc.integer({ min: 0, max: 0xffff }),
    )
    const secondGroup = fc.oneof(
      fc.constantFrom(0, 0x1ff, 0x200, 0xdb8, 0xdb7, 0xdb9, 0xfff, 0x1000),
      fc.integer({ min: 0, max: 0xffff }),
    )
    const rest = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(firstGroup, secondGroup, rest, (first, second, others) => {
        fc.pre(!(first === 0x64 && second === 0xff9b))
        const address = v6Of([first, second, ...others])
        expect([address, isPublicAddress(address)]).toEqual([address, !closedV6.check(address, 'ipv6')])
      }),
      { numRuns: 2000 },
    )
  })

  test('an IPv4 address in a NAT64 address is public exactly if it is public itself', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (value) => {
        expect(isPublicAddress(`64:ff9b::${v4Of(value)}`)).toBe(!closedV4(v4Of(value)))
      }),
      { numRuns: 500 },
    )
    expect(isPublicAddress('64:ff9b::a9fe:a9fe')).toBe(false)
    expect(isPublicAddress('64:ff9b::1:808:808')).toBe(false)
  })
})

describe('parsing', () => {
  test('rejects unusual spellings, which are therefore not public', () => {
    const strange = [
      '',
      'localhost',
      '8.8.8',
      '8.8.8.8.8',
      '08.8.8.8',
      '8.8.8.256',
      '8.8.8.-1',
      '0x8.8.8.8',
      '134744072',
      ' 8.8.8.8',
      '8.8.8.8 ',
      '2606:4700:4700:::1111',
      '2606:4700:4700::1111::1',
      '2606:4700:4700:1111',
      '2606:4700:4700:0:0:0:0:0:1111',
      '2606:4700::8.8.8.8:1',
      '8.8.8.8::1',
      '2606:4700:4700::11111',
      '2606:4700:4700::111g',
      '2606:4700:4700::1111%eth0',
      'fe80::1%lo',
      '[2606:4700:4700::1111]',
      ':2606::1',
    ]
    for (const text of strange)
      expect([text, readAddress(text), isPublicAddress(text)]).toEqual([text, undefined, false])
  })

  test('all spellings of an IPv6 address have the same bytes', () => {
    const bytes = [0x26, 6, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 4, 4]
    for (const text of [
      '2606:4700::808:404',
      '2606:4700:0:0:0:0:808:404',
      '2606:4700::8.8.4.4',
      '2606:4700::0808:0404',
    ])
      expect(readAddress(text)).toEqual(bytes)
    expect(readAddress('::')).toEqual(new Array(16).fill(0))
    expect(readAddress('2606::')?.slice(0, 3)).toEqual([0x26, 6, 0])
  })
})

describe('a range of addresses', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9/32'],
    ['203.0.113.9/24', '203.0.113.0/24'],
    [' 10.0.0.0/8 ', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::1', '2001:db8::1/128'],
    ['2001:db8:1::/32', '2001:db8::/32'],
    ['::/0', '::/0'],
    ['::ffff:10.1.0.0/104', '10.0.0.0/8'],
  ])('%s is stored as %s', (text, network) => {
    expect(canonicalNetwork(text)).toBe(network)
  })

  test.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.1/16',
    '0x0a.0.0.1',
    '2001:db8::/129',
    'fe80::1%eth0',
    '::ffff:10.0.0.0/95',
  ])('%p is none', (text) => {
    expect(canonicalNetwork(text)).toBeUndefined()
  })

  const isInside = networkMatcher(['203.0.113.0/24', '2001:db8::/32', '198.51.100.7/32'])

  test.each([
    '203.0.113.0',
    '203.0.113.255',
    '::ffff:203.0.113.9',
    '203.0.113.9:8080',
    '198.51.100.7',
    '2001:db8::1',
    '2001:0DB8:ffff::',
    '[2001:db8::1]:8080',
    '2001:db8::1%eth0',
  ])('contains %s', (address) => {
    expect(isInside(address)).toBe(true)
  })

  test.each([
    '203.0.112.255',
    '203.0.114.0',
    '198.51.100.8',
    '2001:db9::',
    '::1',
    '',
    'unknown',
    '203.0.113',
    '203.0.113.9, 10.0.0.1',
  ])('does not contain %p', (address) => {
    expect(isInside(address)).toBe(false)
  })
})
