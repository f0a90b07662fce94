import { describe, expect, test } from 'bun:test'
import { createRedaction } from './redaction.ts'

const redact = await createRedaction(['cards', 'ibans', 'email', 'phones', 'secrets'], [])

describe('redaction', () => {
  test.each([
    ['4111111111111111', '[redacted:card]'],
    ['card 4111 1111 1111 1111, thanks', 'card [redacted:card], thanks'],
    ['5500-0000-0000-0004', '[redacted:card]'],
    ['3782 822463 10005', '[redacted:card]'],
    ['1 4111 1111 1111 1111 12', '1 [redacted:card] 12'],
    ['4111111111111111 5500000000000004', '[redacted:card] [redacted:card]'],
    ['4111.1111.1111.1111', '[redacted:card]'],
    ['4111 - 1111 - 1111 - 1111', '[redacted:card]'],
    ['4111\n1111\n1111\n1111', '[redacted:card]'],
    ['3782.822463.10005', '[redacted:card]'],
    ['DE89370400440532013000', '[redacted:iban]'],
    ['pay to DE89 3704 0044 0532 0130 00 NOW please', 'pay to [redacted:iban] NOW please'],
    ['gb29nwbk60161331926819.', '[redacted:iban].'],
    ['NO93 8601 1117 947', '[redacted:iban]'],
    ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG', 'aws_secret_access_key = [redacted:secret]'],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI', 'AWS_SECRET_ACCESS_KEY=[redacted:secret]'],
    ['mysql --password=hunter2 -u a', 'mysql --password=[redacted:secret] -u a'],
    ['/x?password=hunter2&a=b', '/x?password=[redacted:secret]&a=b'],
    ['{"password": "hunter2"}', '{"password": "[redacted:secret]"}'],
    ['write to Ann.Lee+x@mail.example.org.', 'write to [redacted:email].'],
    ['jürgen@müller.de', '[redacted:email]'],
    ['+49 (171) 123-4567', '[redacted:phone]'],
    ['call 0049 171 1234567 now', 'call [redacted:phone] now'],
    ['(415) 555-2671', '[redacted:phone]'],
    ['0171 1234567', '[redacted:phone]'],
    ['use sk-abcdefghijkl please', 'use [redacted:secret] please'],
    ['Bearer abc', '[redacted:secret]'],
    ['eyJhbGciOi.eyJzdWIi.c2ln', '[redacted:secret]'],
    ['-----BEGIN PRIVATE KEY-----\nabc', '[redacted:secret]'],
  ])('replaces %s', (given, expected) => {
    expect(redact(given)).toBe(expected)
  })

  test.each([
    ['4111111111111112'], // its check digit is wrong
    ['411111111111'], // 12 digits
    ['41111111111111111111'], // 20 digits
    ['1111222233334444'],
    ['4111.1111.1111.1112'],
    ['10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4'],
    ['DE88370400440532013000'], // its check digits are wrong
    ['my password is a secret, password: see below'],
    ['3.14159265358979'],
    ['In 2024 there were 1,234,567 of 7.5 million.'],
    ['a @ b, x@y, @name'],
    ['sk-short'],
    ['192.168.100.200'],
    ['2026-01-31T18:00:00Z'],
  ])('leaves %s', (given) => {
    expect(redact(given)).toBe(given)
  })

  test('applies own patterns, and only what is chosen', async () => {
    const own = await createRedaction(['email'], [{ name: 'case', pattern: '(?i)case-\\d{4}' }])
    expect(own('Case-1234, a@b.org, 4111111111111111')).toBe('[redacted:case], [redacted:email], 4111111111111111')
  })

  test('takes linear time on hostile text', async () => {
    const own = await createRedaction(
      ['cards', 'ibans', 'email', 'phones', 'secrets'],
      [{ name: 'x', pattern: '(a+)+$' }],
    )
    const size = 65_536
    const hostile = [
      'eyJ-',
      'password = ',
      'DE89 ',
      '4111.',
      '4111 - ',
      'a',
      'a@a-',
      '1 ',
      '4',
      '+1-',
      '-----BEGIN A',
      'Bearer ',
      'sk-',
      'a.',
      `${'a'.repeat(64)}@${'b'.repeat(250)}!`,
    ]
    const since = performance.now()
    for (const piece of hostile) own(piece.repeat(size / piece.length))
    // Quadratic time on one of them would take minutes.
    expect(performance.now() - since).toBeLessThan(20_000)
  })
})

describe('text of JSON, such as the arguments of a tool', () => {
  const SECRETS = [
    'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789',
    'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    'AKIAIOSFODNN7EXAMPLE',
    '555-123-4567',
    '4111 1111 1111 1111',
    'ann@example.org',
  ]

  test.each(SECRETS)('hides %s after an escaped line break, tab and quote', async (secret) => {
    const redact = await createRedaction(['secrets', 'cards', 'email', 'phones'], [])
    for (const before of ['a\n', 'a\t', 'a "', 'a\\']) {
      const json = JSON.stringify({ note: `${before}${secret}\nend` })
      const clean = redact(json)
      expect(clean).not.toContain(secret)
      expect(JSON.parse(clean).note).toStartWith(before)
      expect(JSON.parse(clean).note).toEndWith('\nend')
    }
  })

  test('hides what is written with escapes of its own, and changes nothing else', async () => {
    const redact = await createRedaction(['secrets', 'cards', 'email', 'phones'], [])
    expect(redact(String.raw`{"a":"ann\u0040example.org"}`)).toBe('{"a":"[redacted:email]"}')
    for (const text of [String.raw`{"a":"b\"c\\d\/e\n\u0022\u00e4\ud83d"}`, String.raw`C:\new\table`, '\\']) {
      expect(redact(text)).toBe(text)
    }
  })
})
