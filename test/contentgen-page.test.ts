/**
 * The manual's table of the fields of a contentgen request, generated from the rows that the protocol uses. With
 * GATEHOUSE_WRITE_TABLES in the environment this test writes it.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { OWN, REFUSED, RENAMED } from '../src/protocols/contentgen/client/fields.ts'
import { manualPath } from './kit/manual.ts'

const PAGE = manualPath('contentgen.md')
const START = '<!-- Made by test/contentgen-page.test.ts; see there. -->'
const END = '<!-- End of what is made. -->'

/** Fields that no row of data describes, since more than their name changes. */
const DESCRIBED: Record<string, string> = {
  contents: 'The conversation: see below. Required.',
  systemInstruction: 'The first system message; parts become paragraphs.',
  'tools[].functionDeclarations':
    "Functions. `parameters` in Gemini's form are converted to a JSON Schema; `parametersJsonSchema` is one. `response` is dropped.",
  'tools[].googleSearch':
    'Web search, if model and provider support it; `excludeDomains` is kept. Also the older `googleSearchRetrieval`.',
  'tools[]': 'Other tools are rejected: `unsupported_parameter`.',
  'toolConfig.functionCallingConfig': '`AUTO`, `ANY`, `NONE` with `allowedFunctionNames`; `VALIDATED` means `AUTO`.',
  'generationConfig.stopSequences': '`stop`, at most five.',
  'generationConfig.responseMimeType':
    '`application/json` is JSON mode, or structured output with a schema; `text/plain` has no effect; `text/x.enum` is rejected.',
  'generationConfig.responseSchema': 'Structured output, converted to a JSON Schema.',
  'generationConfig.responseJsonSchema': 'Structured output; strict if the schema is closed.',
  'generationConfig.responseModalities': '`TEXT` and `IMAGE`; others are rejected.',
  'generationConfig.thinkingConfig.thinkingBudget': 'Token budget for reasoning; 0 is none, -1 leaves it to the model.',
  'generationConfig.thinkingConfig.thinkingLevel': 'Reasoning effort.',
  'generationConfig.thinkingConfig.includeThoughts': 'Turns thinking on and shows it.',
  serviceTier: '`service_tier`; `standard` becomes `default`.',
}

/** The fields that have the same handling, and the handling. */
type Row = [fields: string[], handling: string]

const own = Object.entries(OWN).flatMap(([holder, members]) =>
  members.map((member) => (holder === '' ? member : `${holder}.${member}`)),
)
const refused = Object.groupBy(Object.keys(REFUSED), (path) => REFUSED[path] ?? '')

const rows: Row[] = [
  ...Object.entries(DESCRIBED).map(([field, handling]): Row => [[field], handling]),
  ...Object.entries(RENAMED).map(([member, field]): Row => [[`generationConfig.${member}`], `\`${field}\`.`]),
  [own, 'Unchanged for providers of this API; dropped for others, since they only tune.'],
  ...Object.entries(refused).map(
    ([instead, paths = []]): Row => [paths, `Rejected: \`unsupported_parameter\`; ${instead}.`],
  ),
]

test('the manual describes the handling of each field', () => {
  const lines = rows.map(
    ([fields, handling]) => `| ${fields.map((field) => `\`${field}\``).join(', ')} | ${handling} |`,
  )
  const table = ['| field | handling |', '|---|---|', ...lines, '| any other | Ignored. |'].join('\n')
  const generated = `${START}\n\n${table}\n\n${END}`
  const page = readFileSync(PAGE, 'utf8')
  const [head, tail] = [page.slice(0, page.indexOf(START)), page.slice(page.indexOf(END) + END.length)]
  if (process.env.GATEHOUSE_WRITE_TABLES) writeFileSync(PAGE, head + generated + tail)
  expect(readFileSync(PAGE, 'utf8')).toBe(head + generated + tail)
})

test('no field has two rows', () => {
  const fields = rows.flatMap(([fields]) => fields)
  expect(new Set(fields).size).toBe(fields.length)
})
