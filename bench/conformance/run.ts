/** `npm run bench:conformance`: plays the cases of a streaming gateway against any address, and prints what passes. */
import { parseArgs } from 'node:util'
import { CASES, runCase } from './cases.ts'
import { startVendor } from './vendor.ts'

const HELP = `usage: npm run bench:conformance -- --url URL --token TOKEN --model MODEL --vendor-port PORT [--only NAME]... [--json]

  --url URL            the API of the gateway, for example http://127.0.0.1:8080/v1
  --token TOKEN        what the gateway takes as its bearer token
  --model MODEL        a model whose provider is http://127.0.0.1:PORT/v1, of OpenAI's chat completions, with any key
  --vendor-port PORT   where the command's own vendor listens while it runs
  --header "NAME: V"   a further header of each request; may be repeated
  --only NAME          only these cases: ${CASES.map(({ name }) => name).join(', ')}
  --json               one line of JSON a case
`

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    token: { type: 'string' },
    model: { type: 'string' },
    'vendor-port': { type: 'string' },
    header: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const { url, token, model, 'vendor-port': port, only } = values
const unknown = only?.find((name) => !CASES.some((one) => one.name === name))
const write = (text: string) => process.stdout.write(`${text}\n`)
if (values.help || !url || !token || !model || !port || unknown !== undefined) {
  if (unknown !== undefined) write(`--only ${unknown}: there is no such case.\n`)
  write(HELP)
  process.exit(values.help ? 0 : 2)
}

const vendor = await startVendor(Number(port))
const headers = Object.fromEntries(
  values.header.map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]),
)
const gateway = { url: url.replace(/\/$/, ''), token, model, headers }
const chosen = CASES.filter(({ name }) => only?.includes(name) ?? true)
let failures = 0
for (const one of chosen) {
  const { name, claim } = one
  const reason = await runCase(one, gateway, vendor)
  const passed = reason === undefined
  if (!passed) failures++
  if (values.json) write(JSON.stringify({ case: name, claim, passed, reason }))
  else write(`${passed ? 'pass' : 'FAIL'}  ${name}: ${claim}${passed ? '' : `\n      ${reason}`}`)
}
await vendor.close()
if (!values.json) write(`\n${chosen.length - failures} of ${chosen.length} cases pass.`)
process.exit(failures === 0 ? 0 : 1)
