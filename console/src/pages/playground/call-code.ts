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
  if (path === '/v1/images/edits') return EDITS[language](origin, given)
  const body = shortened(given) as Body
  const client = CLIENT_CALLS[path]
  const isTask = TASKS.includes(path)
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

/** Edits are sent as a form with files, which stand in the code by name. */
const EDITS: Record<Language, (origin: string, body: Body) => string> = {
  curl(origin, body) {
    const fields = Object.entries(textsOf(body)).map(([name, value]) => `-F ${quoted(`${name}=${value}`)}`)
    const several = imagesOf(body).length > 1
    const files = imagesOf(body).map((file) => `-F ${several ? '"image[]' : '"image'}=@${file}"`)
    const mask = body.mask === undefined ? [] : ['-F "mask=@mask.png"']
    const lines = ['-H "Authorization: Bearer $GATEHOUSE_TOKEN"', ...fields, ...files, ...mask]
    return `curl ${origin}/v1/images/edits \\\n  ${lines.join(' \\\n  ')}`
  },
  Python(origin, body) {
    const files = imagesOf(body).map((file) => `open("${file}", "rb")`)
    const fields = Object.entries(textsOf(body)).map(([name, value]) => `    ${name}=${python(value, 1)},\n`)
    const mask = body.mask === undefined ? '' : '    mask=open("mask.png", "rb"),\n'
    return `import os
from openai import OpenAI

client = OpenAI(base_url=${text(`${origin}/v1`)}, api_key=os.environ["GATEHOUSE_TOKEN"])
answer = client.images.edit(
    image=${files.length === 1 ? files[0] : `[${files.join(', ')}]`},
${mask}${fields.join('')})
print(answer.data[0].b64_json)`
  },
  TypeScript(origin, body) {
    const files = imagesOf(body).map((file) => `await toFile(createReadStream('${file}'))`)
    const fields = Object.entries(textsOf(body)).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},\n`)
    const mask = body.mask === undefined ? '' : `  mask: await toFile(createReadStream('mask.png')),\n`
    return `import { createReadStream } from 'node:fs'
import OpenAI, { toFile } from 'openai'

const client = new OpenAI({ baseURL: ${text(`${origin}/v1`)}, apiKey: process.env.GATEHOUSE_TOKEN })
const answer = await client.images.edit({
  image: ${files.length === 1 ? files[0] : `[${files.join(', ')}]`},
${mask}${fields.join('')}})
console.log(answer.data?.[0]?.b64_json)`
  },
}

const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`
const textsOf = ({ image, mask, ...rest }: Body): Body => rest
const imagesOf = ({ image }: Body): string[] =>
  Array.isArray(image) ? image.map((_, index) => `image-${index + 1}.png`) : ['image.png']
