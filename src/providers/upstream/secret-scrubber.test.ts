import { describe, expect, it } from 'bun:test'
import {
  formsOf,
  isSecret,
  MIN_SECRET_BYTES,
  secretsInConfig,
  secretsInHeader,
  secretsInQuery,
} from './secret-forms.ts'
import { createSecretScrubber } from './secret-scrubber.ts'

const KEY = 'sk-canary/9f+8Q==&ä-Zz'
const scrubberOf = (...secrets: string[]) => {
  const scrubber = createSecretScrubber(secrets)
  if (!scrubber) throw new Error('no secret')
  return scrubber
}

const encodings: [name: string, text: string][] = [
  ['plain', KEY],
  ['JSON', JSON.stringify({ a: KEY })],
  ['JSON with escaped slashes', JSON.stringify({ a: KEY }).replaceAll('/', '\\/')],
  ['JSON with escaped HTML', JSON.stringify({ a: KEY }).replaceAll('&', '\\u0026')],
  ['JSON with escaped + and &', JSON.stringify({ a: KEY }).replaceAll('&', '\\u0026').replaceAll('+', '\\u002B')],
  ['percent-encoding', `https://a.example/?key=${encodeURIComponent(KEY)}&x=1`],
  ['percent-encoding in lower case', encodeURIComponent(KEY).replace(/%../g, (code) => code.toLowerCase())],
  ...['', 'u', 'us', 'use', 'user:', 'user::'].flatMap((before): [string, string][] => {
    const bytes = Buffer.from(`${before}${KEY} and more`)
    return [
      [`base64 after "${before}"`, bytes.toString('base64')],
      [`base64url after "${before}"`, bytes.toString('base64url')],
      [`percent-encoded base64 after "${before}"`, encodeURIComponent(bytes.toString('base64'))],
    ]
  }),
]

describe('createSecretScrubber', () => {
  for (const [name, text] of encodings) {
    it(`replaces a secret in ${name}`, () => {
      const clean = scrubberOf(KEY).text(`before ${text} after`)
      expect(clean).toContain('[redacted]')
      expect(clean).toStartWith('before ')
      expect(clean).toEndWith(' after')
      for (const form of formsOf(KEY)) expect(clean).not.toContain(form)
    })

    it(`replaces a secret in ${name}, split into two reads at any byte, and into single bytes`, () => {
      const bytes = Buffer.from(`before ${text} after\n`)
      const whole = scrubberOf(KEY).text(bytes.toString())
      for (let at = 0; at <= bytes.length; at++) {
        const body = scrubberOf(KEY).body()
        const pieces = [body.push(bytes.subarray(0, at)), body.push(bytes.subarray(at)), body.end()]
        expect(Buffer.concat(pieces).toString()).toBe(whole)
      }
      const body = scrubberOf(KEY).body()
      const pieces = [...bytes].map((byte) => Buffer.from(body.push(Uint8Array.of(byte))))
      expect(Buffer.concat([...pieces, body.end()]).toString()).toBe(whole)
    })
  }

  it('replaces each of several secrets, and the longest of those that begin alike', () => {
    const body = scrubberOf('first-secret', 'first-secret-and-more', 'another-one').body()
    const clean = Buffer.concat([
      body.push(Buffer.from('a first-secret-and-more b another-one c first-secret')),
      body.end(),
    ]).toString()
    expect(clean).toBe('a [redacted] b [redacted] c [redacted]')
  })

  it('returns the same bytes, without a copy, if there is no secret', () => {
    const body = scrubberOf(KEY).body()
    const bytes = Buffer.from('data: {"text":"sk-canary/"}\n\n')
    expect(body.push(bytes)).toBe(bytes)
    expect(body.end()).toHaveLength(0)
  })

  it('holds back only what may be the beginning of a secret', () => {
    const body = scrubberOf(KEY).body()
    expect(Buffer.from(body.push(Buffer.from('text sk-canary'))).toString()).toBe('text ')
    expect(Buffer.from(body.push(Buffer.from('-bird'))).toString()).toBe('sk-canary-bird')
  })

  it('gives the same result as a replacement in text, for random data', () => {
    const secrets = ['abababab', 'babababa-x', 'aabbaabbaa']
    let seed = 7
    const next = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed / 2_147_483_648
    }
    for (let round = 0; round < 300; round++) {
      const text = Array.from({ length: 60 }, () => (next() < 0.5 ? 'a' : next() < 0.9 ? 'b' : '-x')).join('')
      const scrubber = scrubberOf(...secrets)
      const body = scrubber.body()
      const pieces: Uint8Array[] = []
      for (let at = 0; at < text.length; ) {
        const size = 1 + Math.floor(next() * 9)
        pieces.push(Buffer.from(body.push(Buffer.from(text.slice(at, at + size)))))
        at += size
      }
      const clean = Buffer.concat([...pieces, body.end()]).toString()
      for (const secret of secrets) expect(clean).not.toContain(secret)
      if (!secrets.some((secret) => text.includes(secret))) expect(clean).toBe(text)
    }
  })
})

describe('deltas', () => {
  const secret = 'sk-canary-0123456789abcdef'

  it('are stopped at half of a secret, however they are split', () => {
    for (let size = 1; size <= secret.length; size++) {
      const watch = scrubberOf(secret).deltas()
      let passed = ''
      for (let at = 0; at < secret.length; at += size) {
        const delta = secret.slice(at, at + size)
        if (watch.completes(delta)) break
        passed += delta
      }
      expect(passed.length).toBeLessThan(secret.length / 2)
    }
  })

  it('pass if they contain less than half of it', () => {
    const watch = scrubberOf(secret).deltas()
    for (const delta of ['sk-', 'canary-', '01', ' sk-sk-', 'canary', '-0', '2'])
      expect(watch.completes(delta)).toBe(false)
  })

  it('are stopped after a false beginning too', () => {
    const watch = scrubberOf('aabaabaaacdefghi').deltas()
    expect(watch.completes('aabaab')).toBe(false)
    expect(watch.completes('aabaaa')).toBe(true)
  })
})

describe('secrets', () => {
  it('have eight bytes or more', () => {
    expect(MIN_SECRET_BYTES).toBe(8)
    expect(isSecret('1234567')).toBe(false)
    expect(isSecret('12345678')).toBe(true)
    expect(isSecret('ääää')).toBe(true)
  })

  it('are not placeholders that replace a key where none is needed', () => {
    for (const word of ['ollama', 'none', 'sk-test', 'EMPTY', 'not-needed', 'lm-studio', 'LM-Studio', 'x']) {
      expect(isSecret(word)).toBe(false)
      expect(createSecretScrubber([word].filter(isSecret))).toBeUndefined()
    }
    expect(isSecret('not-needed-1')).toBe(true)
  })

  it('are read from every part of the configuration that may contain one', () => {
    const found = secretsInConfig({
      key: 'sk-key-of-config',
      base_url: 'https://someone:pass%2Fword@vendor.example/v1',
      headers: {
        authorization: 'Token abcdefgh',
        'x-proxy-secret': 'proxy-secret-1',
        'x-account': 'acct0123456789abc',
        'x-environment': 'production',
        'anthropic-beta': 'prompt-caching-2024-07-31',
        'anthropic-version': '2023-06-01',
        'http-referer': 'https://gateway0.example/a',
        'idempotency-key': 'idempotency-1',
      },
      options: {
        access_key: 'access-key-1',
        region: 'eu-central-1',
        credentials: { type: 'service_account', private_key: '-----BEGIN\nabc\n', project_id: 'project-1' },
      },
    })
    expect(found.sort()).toEqual(
      [
        'sk-key-of-config',
        'pass/word',
        'abcdefgh',
        'proxy-secret-1',
        'acct0123456789abc',
        'access-key-1',
        '-----BEGIN\nabc\n',
      ].sort(),
    )
  })

  it('are read from the headers and the query of a request', () => {
    expect(secretsInHeader('Bearer sk-abcdefgh')).toEqual(['sk-abcdefgh'])
    expect(secretsInHeader('sk-abcdefgh')).toEqual(['sk-abcdefgh'])
    const basic = Buffer.from('user:pass-word').toString('base64')
    expect(secretsInHeader(`Basic ${basic}`)).toEqual([basic, 'pass-word'])
    expect(secretsInHeader('AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=0123456789abcdef')).toEqual([])
    expect(secretsInQuery('https://a.example/?key=AIza%2Fcanary&alt=sse')).toEqual(['AIza/canary'])
    expect(secretsInQuery('https://a.example/')).toEqual([])
    for (const name of ['pageToken', 'page_token', 'nextPageToken', 'continuation-token', 'next_token_page'])
      expect([name, secretsInQuery(`https://a.example/?${name}=Ch5wYWdlLXR3bw`)]).toEqual([
        name,
        name === 'next_token_page' ? ['Ch5wYWdlLXR3bw'] : [],
      ])
  })
})
