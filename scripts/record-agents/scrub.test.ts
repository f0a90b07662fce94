/** Checks what scrubbing leaves of a recorded request. */
import { describe, expect, test } from 'bun:test'
import { fillerFor, isFiller, WORDS } from './filler.ts'
import { createScrubber, foreignProse, PROJECT, type Recorded } from './scrub.ts'

const OURS = ['Please read main.ts.']
const LONG = 'This sentence is not ours: it was written by somebody else, for 3 agents.'
const ID = '01a2013d-04a8-7300-82ce-83faa698edc6'

const request = (body: unknown, headers: Record<string, string> = {}): Recorded => ({
  method: 'POST',
  path: '/v1/x',
  headers,
  body,
})
const scrubber = () =>
  createScrubber({ project: '/tmp/r/project', home: '/tmp/r/home', packages: '/tmp/i/node_modules', ours: OURS })
const scrub = (body: unknown) => scrubber()(request(body)).body

describe('fillerFor', () => {
  test('keeps the length, the line breaks, the punctuation and the tags, and no word', () => {
    const text = `<system-reminder>\n# A Title: "quoted" (x)\n- ${LONG}\n</system-reminder>`
    const filler = fillerFor(text, OURS)
    expect(filler.length).toBe(text.length)
    const skeleton = (one: string) => one.replaceAll(/<[^>]*>/g, '').replaceAll(/[A-Za-z0-9]/g, '')
    expect(skeleton(filler)).toBe(skeleton(text))
    expect(filler).toStartWith('<system-reminder>\n')
    const words = new Set(filler.toLowerCase().match(/[a-z]{5,}/g))
    for (const word of ['title', 'quoted', 'sentence', 'written', 'somebody', 'agents'])
      expect(words).not.toContain(word)
  })

  test('keeps phrases of ours, gives the same filler for the same text, and other digits', () => {
    const text = `At 03:15 ${OURS[0]} ${LONG}`
    expect(fillerFor(text, OURS)).toBe(fillerFor(text, OURS))
    expect(fillerFor(text, OURS)).toContain(`77:77 ${OURS[0]}`)
  })

  test.each(['', 'a', 'internationalization is long', LONG, 'snake_case_name', 'Ünïcode wörds', '—“”🤖'])(
    'is recognized as filler: %p',
    (text) => {
      expect(isFiller(fillerFor(text, OURS), OURS)).toBe(true)
    },
  )

  test.each([LONG, 'river of landscapes', 'rain 12', 'riverstone'])('other text is not: %p', (text) => {
    expect(isFiller(text, OURS)).toBe(false)
  })

  test('has words of the length that their place says', () => {
    for (const [at, words] of WORDS.entries()) for (const word of words) expect(word).toHaveLength(at + 1)
  })
})

describe('a scrubbed request', () => {
  test('has no credentials and nothing of the connection in its headers', () => {
    const headers = {
      authorization: 'Bearer k',
      'x-api-key': 'k',
      'x-goog-api-key': 'k',
      cookie: 'k',
      host: '127.0.0.1:1',
      'content-length': '2',
      'user-agent': 'agent/1.2.3',
      'anthropic-beta': 'one-2025-01-01,two-2025-01-01',
      'session-id': ID,
    }
    expect(scrubber()(request({}, headers)).headers).toEqual({
      'user-agent': 'agent/1.2.3',
      'anthropic-beta': 'one-2025-01-01,two-2025-01-01',
      'session-id': '00000000-0000-7000-8000-000000000001',
    })
  })

  test('has other prose, the same names', () => {
    const tool = {
      type: 'function',
      name: 'read_file',
      description: LONG,
      parameters: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        properties: {
          input: { type: 'string', description: LONG, enum: ['one', 'two'] },
          metadata: { type: 'object', description: LONG },
        },
        required: ['input'],
      },
    }
    const filler = fillerFor(LONG, OURS)
    expect(scrub({ model: 'm', tools: [tool] })).toEqual({
      model: 'm',
      tools: [JSON.parse(JSON.stringify(tool).replaceAll(LONG, filler))],
    })
  })

  test('has the same stand-in for an id in each place and each request, and our paths', () => {
    const scrubOne = scrubber()
    const one = scrubOne(request({ prompt_cache_key: ID, metadata: { user_id: `{"session_id":"${ID}"}` } })).body
    const other = scrubOne(
      request({ input: [{ id: `msg_${ID}`, output: 'in /tmp/r/project/main.ts, /tmp/i/node_modules' }] }),
    ).body
    const standIn = '00000000-0000-7000-8000-000000000001'
    expect(one).toEqual({ prompt_cache_key: standIn, metadata: { user_id: `{"session_id":"${standIn}"}` } })
    expect(JSON.stringify(other)).toContain(`msg_${standIn}`)
    expect(JSON.stringify(other)).toContain(`${PROJECT}/`)
    expect(JSON.stringify(other)).toContain(', /usr/lib/node_modules')
  })

  test('has a grammar of the same length that accepts any text', () => {
    const definition = `start: "*** Begin Patch" /(.|\\n)+/ "*** End Patch" // ${LONG}`
    const { format } = scrub({ format: { syntax: 'lark', definition } }) as {
      format: typeof request & { definition: string }
    }
    expect(format.definition).toHaveLength(definition.length)
    expect(format.definition).toStartWith('start: TEXT\n')
  })
})

describe('foreignProse', () => {
  test('finds nothing in a scrubbed request, and each long string of one that is not', () => {
    const body = {
      tools: [{ name: 'x', description: LONG, parameters: { properties: { args: { description: LONG } } } }],
      messages: [{ role: 'user', content: LONG }],
    }
    expect(foreignProse(scrubber()(request(body)), OURS)).toEqual([])
    expect(foreignProse(request(body), OURS)).toHaveLength(3)
  })

  test('finds prose among names and arguments, and a header of credentials', () => {
    expect(foreignProse(request({ name: LONG }), OURS)).toHaveLength(1)
    expect(foreignProse(request({ metadata: { note: LONG } }), OURS)).toHaveLength(1)
    expect(foreignProse(request({}, { 'x-api-key': 'k' }), OURS)).toEqual(['header x-api-key'])
  })
})
