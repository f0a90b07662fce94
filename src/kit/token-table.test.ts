import { describe, expect, it } from 'bun:test'
import { readFileSync } from 'node:fs'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants'
import { createTokenTable } from './token-table.ts'

const plain = { disallowedSpecial: new Set<string>() }

describe('the table of tokens', () => {
  const path = Bun.fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken'))
  const table = createTokenTable(readFileSync(path, 'latin1'), O200K_TOKEN_SPLIT_REGEX)

  it.each([
    '',
    'hello world',
    "I'm sure they've SEEN it; WE'LL see.",
    'function f(x: number) {\n\treturn x ** 2 // 1234567890\n}\n\n\n   ',
    '漢字かな交じり文と한국어 그리고 العربية ไทย',
    '👩‍👩‍👧‍👦 🇩🇪 é é ﬁ',
    '<|endoftext|> <|fim_prefix|>',
    'aGVsbG8gd29ybGQgYmFzZTY0IHRleHQgd2l0aG91dCBzcGFjZXM'.repeat(8),
    '\uD800 lone \uDC00 surrogates',
    '\r\n \t\v\u00a0\u2003\u2028x',
  ])('counts %p as the library does', (text) => {
    expect(table.count(text)).toBe(countTokens(text, plain))
  })

  it('counts 3,000 random texts as the library does', () => {
    let state = 7
    const random = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    const blocks: [number, number][] = [
      [0x20, 0x7e],
      [0x20, 0x7e],
      [0xa0, 0x24f],
      [0x370, 0x52f],
      [0x4e00, 0x9fff],
      [0x1f300, 0x1faff],
      [0x0, 0x2fff],
    ]
    for (let count = 0; count < 3_000; count++) {
      const [low, high] = blocks[random(blocks.length)] ?? [0x20, 0x7e]
      const text = Array.from({ length: random(60) }, () =>
        random(6) === 0 ? ' ' : String.fromCodePoint(low + random(high - low)),
      ).join('')
      expect([text, table.count(text)]).toEqual([text, countTokens(text, plain)])
    }
  })

  it('counts this source as the library does', () => {
    const text = readFileSync(import.meta.path, 'utf8') + readFileSync(`${import.meta.dir}/token-table.ts`, 'utf8')
    expect(table.count(text)).toBe(countTokens(text, plain))
  })

  it('is refused where ranks are missing', () => {
    expect(() => createTokenTable('IQ== 0\nIg== 2\n', /./g)).toThrow('rank 2 out of order')
  })
})
