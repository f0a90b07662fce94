import { describe, expect, test } from 'bun:test'
import { createManual } from './manual-search.ts'

const PAGES = [
  {
    name: 'tokens.md',
    text: `# Tokens

A token is what a client presents.

## Revoking a token

A revoked token stops working within a second. Run \`gatehouse token revoke\` with its id. Streams that are open go on.

\`\`\`sh
# not a heading
gatehouse token revoke tok_1
\`\`\`

## Expiry dates

- A token may carry an expiry date,
  given in days.
- Without one it is valid for ever.
`,
  },
  {
    name: 'streaming.md',
    text: `# Streaming

Answers arrive as server-sent events. Silence of fifteen seconds is broken by a keep-alive comment.

| field | meaning |
|---|---|
| usage | sent last when asked for |
| first_ms | the wait before status 429 |
`,
  },
]
const manual = createManual(PAGES)
const best = (question: string) => manual.search(question, 1)[0]
const everything = PAGES.map(({ text }) => text.replace(/\s+/g, ' ')).join(' ')

describe('the index of the manual', () => {
  test.each([
    ['How do I revoke a token?', 'tokens', 'Revoking a token'],
    ['what happens to open streams when a token is revoked', 'tokens', 'Revoking a token'],
    ['Do tokens have an expiry date?', 'tokens', 'Expiry dates'],
    ['When is a keep-alive comment sent?', 'streaming', 'Streaming'],
    ['What does 429 mean?', 'streaming', 'Streaming'],
    ['what is first_ms for', 'streaming', 'Streaming'],
  ])('%j is answered by its section', (question, page, heading) => {
    const found = best(question)
    expect(found?.isGood).toBe(true)
    expect(found?.section).toMatchObject({ page, heading })
  })

  test.each([
    'Write a poem about the sea',
    'What is 2 + 2?',
    '',
    'Say hello',
    'revoke',
    'What does 430 mean?',
    'what is second_ms for',
    'revoke token',
    'What is the capital of France?',
    'seconds of silence in Mozart operas',
  ])('%j is not a question about the manual', (question) => {
    expect(best(question)?.isGood ?? false).toBe(false)
  })

  test('a passage is a verbatim quote within its limit', () => {
    for (const question of ['revoke a token', 'expiry date', 'keep-alive comment', 'usage sent last']) {
      for (const maximum of [20, 60, 120, 700]) {
        const found = best(question)
        const passage = found ? manual.passage(found.section, question, maximum) : ''
        expect(passage.length).toBeGreaterThan(0)
        expect(passage.length).toBeLessThanOrEqual(maximum)
        for (const line of passage.split('\n')) expect(everything).toContain(line.replace(/\s+/g, ' '))
      }
    }
  })

  test('a passage surrounds the best sentence, with code unchanged', () => {
    const found = best('revoke a token')
    const passage = found ? manual.passage(found.section, 'revoke a token', 700) : ''
    expect(passage).toContain('stops working within a second. Run `gatehouse token revoke` with its id.')
    expect(passage).toContain('```sh\n# not a heading\ngatehouse token revoke tok_1\n```')
  })

  test('the delimiter row of a table is no text, and a comment in code is no heading', () => {
    const found = best('usage sent last')
    expect(found ? manual.passage(found.section, 'usage', 700) : '').not.toContain('---')
    expect(manual.search('not a heading', 9).map(({ section }) => section.heading)).not.toContain('not a heading')
  })

  test('anchors are those of the headings', () => {
    expect(best('revoking a token')?.section.anchor).toBe('revoking-a-token')
  })

  test('an empty manual has no results', () => {
    expect(createManual([]).search('token', 3)).toEqual([])
    expect(createManual([{ name: 'empty.md', text: '' }]).search('token', 3)).toEqual([])
  })

  test('a page beyond the memory limit is left out', () => {
    const big = createManual([...PAGES, { name: 'big.md', text: `# Big\n\n${'giraffe zebra '.repeat(300_000)}` }])
    expect(big.search('giraffe zebra', 1)).toEqual([])
    expect(big.search('revoke a token', 1)).toHaveLength(1)
  })
})

test('a question that equals a heading is answered by its section, whatever the weights of its words', () => {
  const text = '# Start\n\n## What is it?\n\nIt is a gateway.\n\n## How do I start it?\n\nRun it.\n'
  const manual = createManual([{ name: 'start.md', text }])
  const [found] = manual.search('what is IT', 3)
  expect(found?.isGood).toBe(true)
  expect(found?.section.heading).toBe('What is it?')
  expect(manual.search('start', 3).some(({ isGood }) => isGood)).toBe(false)
})

describe('a question about the topic of a heading', () => {
  const text = `# Start\n\n## Gatehouse\n\nA name.\n\n## What Gatehouse is\n\nIt is a gateway.\n\n## Add a provider\n\nName it.\n
## Provider keys\n\nTo add a key of a provider, add it where the provider is added.\n`
  const manual = createManual([{ name: 'start.md', text }])

  test.each([
    ['What is Gatehouse?', 'What Gatehouse is'],
    ['How do I add a provider?', 'Add a provider'],
    ['How can I have providers added to Gatehouse?', 'Add a provider'],
  ])('%j is answered by its section', (question, heading) => {
    const [found] = manual.search(question, 3)
    expect([found?.section.heading, found?.isGood]).toEqual([heading, true])
  })

  test.each(['add provider', 'Gatehouse', 'Is it so?', ''])('%j is not such a question', (question) => {
    expect(manual.search(question, 3).some(({ isGood }) => isGood)).toBe(false)
  })
})
