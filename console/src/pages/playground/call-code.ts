/** Writes a call of any kind but chat as code: with the client of OpenAI where it has the call, otherwise over HTTP. */
import type { Body } from './chat-body.ts'
import { curl, json, type Language, openaiPython, openaiTypeScript, python, shortened, text } from './code-text.ts'
import type { PlaygroundCall } from './use-call.ts'

type Code = { origin: string; language: Language; call: PlaygroundCall }

/** The call of the client and what is read of its answer. */
const CLIENT_CALLS: Record<string, readonly [call: string, read: string, readInTypeScript?: string]> = {
  '/v1/embeddings': ['embeddings.create', 'answer.data[0].embedding', 'answer.data[0]?.embedding'],
  '/v1/moderations': ['moderations.create', 'answer.results[0]'],
  '/v1/images/generations': ['images.generate', 'answer.data[0].b64_json', 'answer.data?.[0]?.b64_json'],
}
/** Their calls make tasks, which are polled. */
const TASKS = ['/v1/video/generations', '/v1/3d/generations']

export function callCode({ origin, language, call: { path, body: given } }: Code): string {
  if (FORMS[path]) return formCode[language]({ origin, path, body: given, ...FORMS[path] })
  const body = shortened(given) as Body
  const client = CLIENT_CALLS[path]
  const isTask = TASKS.includes(path)
  if (path === SPEECH) return speechCode[language](origin, body)
  if (language === 'curl') return curl(origin + path, body) + (isTask ? taskCurl(origin + path) : '')
  if (language === 'Python')
    return client ? openaiPython(client[0], client[1])(origin, body) : httpPython(origin + path, body, isTask)
  return client
    ? openaiTypeScript(client[0], client[2] ?? client[1])(origin, body)
    : httpTypeScript(origin + path, body, isTask)
}

const taskCurl = (address: string): string => `

# The response has the task_id. Ask until the status is SUCCESS or FAILURE; then outputs has the addresses.
curl ${address}/$TASK_ID \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN"`

const httpPython = (address: string, body: Body, isTask: boolean): string => `import os
${isTask ? 'import time\n' : ''}import requests

url = ${text(address)}
headers = {"Authorization": f"Bearer {os.environ['GATEHOUSE_TOKEN']}"}
response = requests.post(url, headers=headers, json=${python(body, 0)})
response.raise_for_status()
${isTask ? TASK_PYTHON : 'print(response.json())'}`

const TASK_PYTHON = `task = response.json()["data"]
while task["status"] not in ("SUCCESS", "FAILURE"):
    time.sleep(5)
    task = requests.get(f"{url}/{task['task_id']}", headers=headers).json()["data"]
print(task["outputs"] or task["fail_reason"])`

const httpTypeScript = (address: string, body: Body, isTask: boolean): string => `const url = ${text(address)}
const headers = { authorization: \`Bearer \${process.env.GATEHOUSE_TOKEN}\`, 'content-type': 'application/json' }
const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(${json(body)}) })
if (!response.ok) throw new Error(await response.text())
${isTask ? TASK_TYPESCRIPT : 'console.log(await response.json())'}`

const TASK_TYPESCRIPT = `let { data: task } = await response.json()
while (!['SUCCESS', 'FAILURE'].includes(task.status)) {
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  task = (await (await fetch(\`\${url}/\${task.task_id}\`, { headers })).json()).data
}
console.log(task.outputs ?? task.fail_reason)`

const SPEECH = '/v1/audio/speech'
const fileOf = ({ response_format = 'mp3' }: Body): string => `speech.${response_format}`
const spoken = ({ stream_format, ...body }: Body): Body => body

/** The response is the audio itself, which is written to a file. */
const speechCode: Record<Language, (origin: string, body: Body) => string> = {
  curl: (origin, body) => `${curl(origin + SPEECH, spoken(body))} \\\n  --output ${fileOf(body)}`,
  Python: (origin, body) =>
    openaiPython('audio.speech.create', `answer.write_to_file("${fileOf(body)}")`)(origin, spoken(body)),
  TypeScript: (origin, body) => `import { writeFile } from 'node:fs/promises'
${openaiTypeScript('audio.speech.create', 'answer.headers.get("content-type")')(origin, spoken(body))}
await writeFile('${fileOf(body)}', new Uint8Array(await answer.arrayBuffer()))`,
}

type Upload = { field: string; names: string[] }
type Form = { call: string; read: string; readInTypeScript?: string; uploads(body: Body): Upload[] }

/** Calls that are sent as a form with files, which stand in the code by name. */
const FORMS: Record<string, Form> = {
  '/v1/images/edits': {
    call: 'images.edit',
    read: 'answer.data[0].b64_json',
    readInTypeScript: 'answer.data?.[0]?.b64_json',
    uploads: ({ image, mask }) => [
      { field: 'image', names: Array.isArray(image) ? image.map((_, at) => `image-${at + 1}.png`) : ['image.png'] },
      ...(mask === undefined ? [] : [{ field: 'mask', names: ['mask.png'] }]),
    ],
  },
  '/v1/audio/transcriptions': { call: 'audio.transcriptions.create', read: 'answer.text', uploads: () => [AUDIO] },
  '/v1/audio/translations': { call: 'audio.translations.create', read: 'answer.text', uploads: () => [AUDIO] },
}
const AUDIO: Upload = { field: 'file', names: ['audio.mp3'] }

const formCode: Record<Language, (form: Form & { origin: string; path: string; body: Body }) => string> = {
  curl({ origin, path, body, uploads }) {
    const fields = Object.entries(textsOf(body)).flatMap(([name, value]) =>
      Array.isArray(value) ? value.map((one) => `${name}[]=${one}`) : [`${name}=${value}`],
    )
    const files = uploads(body).flatMap(({ field, names }) =>
      names.map((name) => `-F "${field}${names.length > 1 ? '[]' : ''}=@${name}"`),
    )
    const lines = [
      '-H "Authorization: Bearer $GATEHOUSE_TOKEN"',
      ...fields.map((one) => `--form-string ${quoted(one)}`),
      ...files,
    ]
    return `curl ${origin}${path} \\\n  ${lines.join(' \\\n  ')}`
  },
  Python({ origin, body, call, read, uploads }) {
    const fields = Object.entries(textsOf(body)).map(([name, value]) => `    ${name}=${python(value, 1)},\n`)
    return `import os
from openai import OpenAI

client = OpenAI(base_url=${text(`${origin}/v1`)}, api_key=os.environ["GATEHOUSE_TOKEN"])
answer = client.${call}(
${filesIn(uploads(body), '=', (name) => `open("${name}", "rb")`)}${fields.join('')})
print(${read})`
  },
  TypeScript({ origin, body, call, read, readInTypeScript = read, uploads }) {
    const fields = Object.entries(textsOf(body)).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},\n`)
    return `import { createReadStream } from 'node:fs'
import OpenAI, { toFile } from 'openai'

const client = new OpenAI({ baseURL: ${text(`${origin}/v1`)}, apiKey: process.env.GATEHOUSE_TOKEN })
const answer = await client.${call}({
${filesIn(uploads(body), ': ', (name) => `await toFile(createReadStream('${name}'))`, '  ')}${fields.join('')}})
console.log(${readInTypeScript})`
  },
}

/** A line for each field with files; more than one file is a list. */
const filesIn = (uploads: Upload[], separator: string, open: (name: string) => string, indent = '    '): string =>
  uploads
    .map(({ field, names }) => {
      const files = names.map(open)
      return `${indent}${field}${separator}${files.length === 1 ? files[0] : `[${files.join(', ')}]`},\n`
    })
    .join('')

const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`
const textsOf = ({ image, mask, ...rest }: Body): Body => rest
