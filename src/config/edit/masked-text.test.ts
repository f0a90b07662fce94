import { describe, expect, test } from 'bun:test'
import { hasMasks, maskText, renumberMasks, unmaskText } from './masked-text.ts'

const TEXT = `# the file
server: { port: 8787 } # a port
providers:
  acme:
    base_url: https://api.acme.example/v1
    api_key: sk-secret-1
    headers: { x-team: "a \\"b\\"" }
  other:
    base_url: https://user:pass@other.example/v1
    keys:
      - { name: first, api_key: "\${OTHER_KEY}" }
      - name: second
        api_key: |
          sk-block
`

describe('the text for an editor', () => {
  test('has numbered masks for what may be a secret, and everything else as it is', () => {
    const masked = maskText(TEXT)
    expect(masked?.text).not.toMatch(/sk-|pass@|a \\"b/)
    for (const kept of [
      '# the file',
      '# a port',
      'port: 8787',
      'https://api.acme.example/v1',
      '${OTHER_KEY}',
      'name: first',
    ])
      expect(masked?.text).toContain(kept)
    expect(masked?.text).toContain("api_key: '***1'")
  })

  test('gets its values back at their places, also in shorter lists, and the same text where nothing was changed', () => {
    const masked = maskText(TEXT) ?? { text: '', values: [] }
    const { text } = masked
    expect(hasMasks(text)).toBe(true)
    expect(Bun.YAML.parse(unmaskText(text, masked))).toEqual(Bun.YAML.parse(TEXT))
    const fewer = "providers: { other: { base_url: '***3', keys: [{ name: second, api_key: '***4' }] } }\n"
    expect(Bun.YAML.parse(unmaskText(fewer, masked))).toEqual({
      providers: {
        other: {
          base_url: 'https://user:pass@other.example/v1',
          keys: [{ name: 'second', api_key: 'sk-block\n' }],
        },
      },
    })
    const simple = 'providers:\n  a: { api_key: sk-1 }\n'
    const once = maskText(simple)
    expect(unmaskText(once?.text ?? '', once ?? masked)).toBe(simple)
  })

  test('refuses a mask that stands for nothing or was moved, and leaves other stars alone', () => {
    const values = { text: '', values: [{ path: ['b'], text: 'x' }] }
    expect(() => unmaskText("a: '***1'\n", values)).toThrow('***1 stands for the value at b and may be kept only there')
    expect(() => unmaskText("a: '***9'\n", values)).toThrow('***9 stands for no value of the present file')
    expect(hasMasks("a: '***'\nb: '*** 1'\n")).toBe(false)
    expect(unmaskText("a: '***'\n", { text: '', values: [] })).toBe("a: '***'\n")
  })

  test('sends no secret elsewhere than the file does', () => {
    const masked = maskText(TEXT) ?? { text: '', values: [] }
    const elsewhere = masked.text.replace('https://api.acme.example/v1', 'https://evil.example/v1')
    expect(() => unmaskText(elsewhere, masked)).toThrow('is a secret that would be sent elsewhere')
    const added = masked.text.replace('    api_key:', '    kind: anthropic\n    api_key:')
    expect(() => unmaskText(added, masked)).toThrow('is a secret that would be sent elsewhere')
    const other = masked.text.replace('port: 8787', 'port: 8788')
    expect(unmaskText(other, masked)).toContain('sk-secret-1')
  })

  test('keeps a secret beside a masked address, and sends it to no other one', () => {
    const url = 'https://checks.example/guard?code=secret'
    const text = `guards:\n  house: { kind: webhook, format: lakera, url: "${url}", key: k-1 }\n`
    const masked = maskText(text) ?? { text: '', values: [] }
    expect(masked.text).not.toMatch(/secret|k-1/)
    const observed = masked.text.replace('kind: webhook', 'kind: webhook, mode: observe')
    expect(unmaskText(observed, masked)).toBe(text.replace('kind: webhook', 'kind: webhook, mode: observe'))
    const elsewhere = masked.text.replace(/url: '\*\*\*\d'/, 'url: "https://evil.example"')
    expect(() => unmaskText(elsewhere, masked)).toThrow('is a secret that would be sent elsewhere')
    expect(() => unmaskText(masked.text.replace('lakera', 'bedrock'), masked)).toThrow('would be sent elsewhere')
  })

  test('is not there for what is no YAML', () => {
    expect(maskText('a: [')).toBeUndefined()
    expect(maskText('')).toEqual({ text: '', values: [] })
  })
})

describe('an earlier text', () => {
  /** As it comes back after `now` was applied: with the numbers of `now`. */
  function rolledBack(earlier: string, now: string) {
    const present = maskText(now) ?? { text: '', values: [] }
    const text = renumberMasks(maskText(earlier)?.text ?? '', present.values)
    return { text, restore: () => unmaskText(text, present) }
  }
  const keys = (...items: string[]) => `providers:\n  a: { kind: openai, keys: [${items.join(', ')}] }\n`
  const key = (name: string, value: string) => `{ name: ${name}, key: ${value} }`

  test('gets its own values where others were added above them', () => {
    const added = 'providers: { 0: { key: sk-0 }, a: { key: sk-1 }, b: { key: sk-2 } }\n'
    const earlier = 'providers: { a: { key: sk-1 }, b: { key: sk-2 } }\n'
    const { text, restore } = rolledBack(earlier, added)
    expect(text).toBe("providers: { a: { key: '***2' }, b: { key: '***3' } }\n")
    expect(restore()).toBe(earlier)
  })

  test('finds the items of a list by their names, and asks for those that are gone', () => {
    const [main, spare, fresh] = [key('main', 'sk-1'), key('spare', 'sk-2'), key('new', 'sk-3')]
    expect(rolledBack(keys(main, spare), keys(spare, main)).restore()).toBe(keys(main, spare))
    const gone = rolledBack(keys(main, spare), keys(fresh, main))
    expect(gone.text).toBe(keys(key('main', "'***2'"), key('spare', "'***99999'")))
    expect(gone.restore).toThrow(
      '***99999 at providers.a.keys.*.key is a secret of the earlier text that is not in the present file: write it anew',
    )
  })

  test('takes no value of an item without a name, or with that of another', () => {
    for (const items of [['sk-1', 'sk-2'], [key('a', 'sk-1'), key('a', 'sk-2')], ['{ key: sk-1 }']])
      expect(rolledBack(keys(...items), keys(...items)).restore).toThrow('write it anew')
  })

  test('asks for the secrets of a provider that was removed, and for all where there is no file', () => {
    const earlier = 'providers: { a: { key: sk-1 }, b: { key: sk-2 } }\n'
    const lost = "providers: { a: { key: '***99999' }, b: { key: '***1' } }\n"
    expect(rolledBack(earlier, 'providers: { b: { key: sk-2 } }\n').text).toBe(lost)
    expect(renumberMasks(lost, [])).toBe(lost.replace("'***1'", "'***99999'"))
  })
})
