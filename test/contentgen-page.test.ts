/**
 * The manual's table of what becomes of each field of a contentgen request: it is made from the rows that the dialect
 * works by. With GATEHOUSE_WRITE_TABLES in the environment this test writes it anew.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { OWN, REFUSED, RENAMED } from '../src/chat/dialects/contentgen-fields.ts'
import { manualPath } from './kit/manual.ts'

const PAGE = manualPath('contentgen.md')
const START = '<!-- Made by test/contentgen-page.test.ts; see there. -->'
const END = '<!-- End of what is made. -->'

/** What is no row of data, since more than a name changes. */
const WORDS: Record<string, string> = {
  contents: 'The conversation: see below. Required.',
  systemInstruction: 'The first system message; several parts are paragraphs of it.',
  'tools[].functionDeclarations':
    'Functions. Their `parameters` in the form of this API become a JSON Schema; `parametersJsonSchema` is one. What they answer with (`response`) is dropped.',
  'tools[].googleSearch':
    'A search on the web, for models and vendors that have one; `excludeDomains` is kept. So is the older `googleSearchRetrieval`.',
  'tools[]': 'All other tools are refused: `unsupported_parameter`.',
  'toolConfig.functionCallingConfig': '`AUTO`, `ANY`, `NONE` with `allowedFunctionNames`; `VALIDATED` is `AUTO`.',
  'generationConfig.stopSequences': '`stop`, at most five.',
  'generationConfig.responseMimeType':
    '`application/json` is JSON mode, or structured output beside a schema; `text/plain` is nothing; `text/x.enum` is refused.',
  'generationConfig.responseSchema': 'Structured output, after it became a JSON Schema.',
  'generationConfig.responseJsonSchema': 'Structured output. Where the schema is closed, strictly.',
  'generationConfig.responseModalities': '`TEXT` and `IMAGE`; others are refused.',
  'generationConfig.thinkingConfig.thinkingBudget':
    'A budget of tokens for reasoning; 0 is none, -1 leaves it to the model.',
  'generationConfig.thinkingConfig.thinkingLevel': 'The effort of reasoning.',
  'generationConfig.thinkingConfig.includeThoughts': 'Thinking is turned on and shown.',
  serviceTier: '`service_tier`; `standard` is `default`.',
}

const rows: [string, string][] = [
  ...Object.entries(WORDS),
  ...Object.entries(RENAMED).map(([member, field]): [string, string] => [
    `generationConfig.${member}`,
    `\`${field}\`.`,
  ]),
  ...Object.entries(OWN).flatMap(([holder, members]) =>
    members.map((member): [string, string] => [
      holder === '' ? member : `${holder}.${member}`,
      'As it is to vendors of this API; dropped for all others, since it only tunes.',
    ]),
  ),
  ...Object.entries(REFUSED).map(([path, instead]): [string, string] => [
    path,
    `Refused: \`unsupported_parameter\`; ${instead}.`,
  ]),
]

test('the manual says of each field what becomes of it', () => {
  const lines = rows.map(([field, fate]) => `| \`${field}\` | ${fate} |`)
  const table = ['| field | what becomes of it |', '|---|---|', ...lines, '| any other | Ignored. |'].join('\n')
  const made = `${START}\n\n${table}\n\n${END}`
  const page = readFileSync(PAGE, 'utf8')
  const [head, tail] = [page.slice(0, page.indexOf(START)), page.slice(page.indexOf(END) + END.length)]
  if (process.env.GATEHOUSE_WRITE_TABLES) writeFileSync(PAGE, head + made + tail)
  expect(readFileSync(PAGE, 'utf8')).toBe(head + made + tail)
})

test('no field has two rows', () => {
  expect(new Set(rows.map(([field]) => field)).size).toBe(rows.length)
})
