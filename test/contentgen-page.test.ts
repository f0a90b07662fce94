/**
 * The manual's table of the fields of a contentgen request, generated from the rows that the protocol uses. With
 * GATEHOUSE_WRITE_TABLES in the environment this test writes it.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { OWN, REFUSED, RENAMED } from '../src/protocols/contentgen/client/fields.ts'
import { manualPath } from './kit/manual.ts'

const PAGE = manualPath('contentgen.md')
const START = '<!-- Generated: test/contentgen-page.test.ts -->'
const END = '<!-- End. -->'

/** Fields whose handling is more than a new name, and so is not in the data rows. */
const DESCRIBED: Record<string, string> = {
  contents: 'The conversation: see below. Required.',
  systemInstruction: 'The first system message; parts become paragraphs.',
  'tools[].functionDeclarations':
    "Functions. `parameters` in Gemini's form become a JSON Schema, `parametersJsonSchema` is one; `response` is dropped.",
  'tools[].googleSearch':
    'Web search, if model and provider support it; `excludeDomains` is kept. Also the older `googleSearchRetrieval`.',
  'tools[]': 'Other tools are rejected: `unsupported_parameter`.',
  'toolConfig.functionCallingConfig':
    '`AUTO`, `ANY`, `NONE` with `allowedFunctionNames`; `VALIDATED` means `AUTO`. Each name must be one of `functionDeclarations`.',
  'generationConfig.stopSequences': '`stop`, at most five.',
  'generationConfig.responseMimeType':
    '`application/json` is JSON mode, or structured output with a schema; `text/x.enum` is one value of the `enum` of the schema, as text; `text/plain` has no effect.',
  'generationConfig.responseSchema': 'Structured output, converted to a JSON Schema.',
  'generationConfig.responseJsonSchema': 'Structured output; strict if the schema is closed.',
  'generationConfig.responseModalities': '`TEXT` and `IMAGE`; others are rejected.',
  'generationConfig.thinkingConfig.thinkingBudget': 'Token budget for reasoning; 0 is none, -1 leaves it to the model.',
  'generationConfig.thinkingConfig.thinkingLevel': 'Reasoning effort.',
  'generationConfig.thinkingConfig.includeThoughts': 'Turns thinking on and shows it.',
  serviceTier: '`service_tier`; `standard` becomes `default`.',
}

/** The fields with the same handling, and the handling. */
type Row = [fields: string[], handling: string]

const own = Object.entries(OWN).flatMap(([holder, members]) =>
  members.map((member) => (holder === '' ? member : `${holder}.${member}`)),
)
const refused = Object.groupBy(Object.keys(REFUSED), (path) => REFUSED[path] ?? '')

const rows: Row[] = [
  ...Object.entries(DESCRIBED).map(([field, handling]): Row => [[field], handling]),
  [
    Object.keys(RENAMED).map((member) => `generationConfig.${member}`),
    `${Object.values(RENAMED)
      .map((field) => `\`${field}\``)
      .join(', ')}, in this order.`,
  ],
  [own, 'Unchanged for providers of this API; dropped for others, since they only tune.'],
  ...Object.entries(refused).map(
    ([instead, paths = []]): Row => [paths, `Rejected: \`unsupported_parameter\`; ${instead}.`],
  ),
]

test('the manual describes the handling of each field', () => {
  const lines = rows.map(([fields, handling]) => `- ${namesOf(fields)}: ${handling}`)
  const generated = `${START}\n\n${lines.join('\n')}\n- any other: Ignored.\n\n${END}`
  const page = readFileSync(PAGE, 'utf8')
  const [head, tail] = [page.slice(0, page.indexOf(START)), page.slice(page.indexOf(END) + END.length)]
  if (process.env.GATEHOUSE_WRITE_TABLES) writeFileSync(PAGE, head + generated + tail)
  expect(readFileSync(PAGE, 'utf8')).toBe(head + generated + tail)
})

/** Only the first field of an object has the object's path: `generationConfig.seed`, `topP`. */
function namesOf(fields: string[]): string {
  const byHolder = Object.groupBy(fields, (field) => field.slice(0, field.lastIndexOf('.') + 1))
  return Object.entries(byHolder)
    .map(([holder, paths = []]) =>
      paths.map((path, at) => `\`${at === 0 ? path : path.slice(holder.length)}\``).join(', '),
    )
    .join(', ')
}

test('no field has two rows', () => {
  const fields = rows.flatMap(([fields]) => fields)
  expect(new Set(fields).size).toBe(fields.length)
})
