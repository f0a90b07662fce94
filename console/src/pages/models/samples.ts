/** Samples of calls of a model, for each kind of endpoint, language and coding agent. */
import type { AdminModelWithSettings } from '../../api/types.ts'

export type Sample = { name: string; text: string }
type Speech = AdminModelWithSettings['speech']
type Parts = { origin: string; model: string; speech?: Speech | undefined }

const json = (value: unknown, indent = 2): string => JSON.stringify(value, null, indent)
/** In a shell, between single quotes. */
const quoted = (value: unknown): string => `'${json(value).replaceAll("'", "'\\''")}'`
/** A string of Python and TypeScript alike. */
const text = (value: string): string => JSON.stringify(value)

type Curl = { origin: string; path: string; body: object; output?: string }
const curl = ({ origin, path, body, output }: Curl): Sample => ({
  name: 'curl',
  text: `curl ${origin}${path} \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(body)}${
    output
      ? ` \\
  --output ${output}`
      : ''
  }`,
})

const QUESTION = 'What is a gatehouse?'
const MESSAGES = [{ role: 'user', content: QUESTION }]

const openaiPython = ({ origin }: Parts, call: string): Sample => ({
  name: 'Python',
  text: `import os
from openai import OpenAI

client = OpenAI(base_url=${text(`${origin}/v1`)}, api_key=os.environ["GATEHOUSE_TOKEN"])
${call}`,
})

const openaiTypeScript = ({ origin }: Parts, call: string): Sample => ({
  name: 'TypeScript',
  text: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${text(`${origin}/v1`)}, apiKey: process.env.GATEHOUSE_TOKEN })
${call}`,
})

function chat(parts: Parts): Sample[] {
  const model = text(parts.model)
  return [
    curl({ ...parts, path: '/v1/chat/completions', body: { model: parts.model, messages: MESSAGES } }),
    openaiPython(
      parts,
      `completion = client.chat.completions.create(
    model=${model},
    messages=[{"role": "user", "content": "${QUESTION}"}],
)
print(completion.choices[0].message.content)`,
    ),
    openaiTypeScript(
      parts,
      `const completion = await client.chat.completions.create({
  model: ${model},
  messages: [{ role: 'user', content: '${QUESTION}' }],
})
console.log(completion.choices[0]?.message.content)`,
    ),
  ]
}

function responses(parts: Parts): Sample[] {
  const model = text(parts.model)
  return [
    curl({ ...parts, path: '/v1/responses', body: { model: parts.model, input: QUESTION } }),
    openaiPython(
      parts,
      `response = client.responses.create(model=${model}, input="${QUESTION}")\nprint(response.output_text)`,
    ),
    openaiTypeScript(
      parts,
      `const response = await client.responses.create({ model: ${model}, input: '${QUESTION}' })\nconsole.log(response.output_text)`,
    ),
    {
      name: 'Codex',
      text: `# ~/.codex/config.toml
model = ${model}
model_provider = "gatehouse"

[model_providers.gatehouse]
name = "Gatehouse"
base_url = ${text(`${parts.origin}/v1`)}
env_key = "GATEHOUSE_TOKEN"
wire_api = "responses"`,
    },
  ]
}

function messages(parts: Parts): Sample[] {
  const model = text(parts.model)
  return [
    curl({ ...parts, path: '/v1/messages', body: { model: parts.model, max_tokens: 1024, messages: MESSAGES } }),
    {
      name: 'Python',
      text: `import os
from anthropic import Anthropic

client = Anthropic(base_url=${text(parts.origin)}, auth_token=os.environ["GATEHOUSE_TOKEN"])
message = client.messages.create(
    model=${model},
    max_tokens=1024,
    messages=[{"role": "user", "content": "${QUESTION}"}],
)
print(message.content[0].text)`,
    },
    {
      name: 'TypeScript',
      text: `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: ${text(parts.origin)}, authToken: process.env.GATEHOUSE_TOKEN })
const message = await client.messages.create({
  model: ${model},
  max_tokens: 1024,
  messages: [{ role: 'user', content: '${QUESTION}' }],
})
console.log(message.content)`,
    },
    {
      name: 'Claude Code',
      text: `export ANTHROPIC_BASE_URL=${parts.origin}
export ANTHROPIC_AUTH_TOKEN=$GATEHOUSE_TOKEN
export ANTHROPIC_MODEL=${parts.model}
claude`,
    },
  ]
}

function contentgen(parts: Parts): Sample[] {
  const model = text(parts.model)
  const path = `/v1beta/models/${parts.model}:generateContent`
  return [
    curl({ ...parts, path, body: { contents: [{ parts: [{ text: QUESTION }] }] } }),
    {
      name: 'Python',
      text: `import os
from google import genai

client = genai.Client(
    api_key=os.environ["GATEHOUSE_TOKEN"],
    http_options={"base_url": ${text(parts.origin)}},
)
response = client.models.generate_content(model=${model}, contents="${QUESTION}")
print(response.text)`,
    },
    {
      name: 'TypeScript',
      text: `import { GoogleGenAI } from '@google/genai'

const client = new GoogleGenAI({
  apiKey: process.env.GATEHOUSE_TOKEN,
  httpOptions: { baseUrl: ${text(parts.origin)} },
})
const response = await client.models.generateContent({ model: ${model}, contents: '${QUESTION}' })
console.log(response.text)`,
    },
    {
      name: 'Gemini CLI',
      text: `export GOOGLE_GEMINI_BASE_URL=${parts.origin}
export GEMINI_API_KEY=$GATEHOUSE_TOKEN
export GEMINI_MODEL=${parts.model}
gemini`,
    },
  ]
}

function embeddings(parts: Parts): Sample[] {
  const model = text(parts.model)
  return [
    curl({ ...parts, path: '/v1/embeddings', body: { model: parts.model, input: ['A gate', 'A house'] } }),
    openaiPython(
      parts,
      `result = client.embeddings.create(model=${model}, input=["A gate", "A house"])\nprint(len(result.data[0].embedding))`,
    ),
    openaiTypeScript(
      parts,
      `const result = await client.embeddings.create({ model: ${model}, input: ['A gate', 'A house'] })\nconsole.log(result.data.length)`,
    ),
  ]
}

function images(parts: Parts): Sample[] {
  const model = text(parts.model)
  return [
    curl({ ...parts, path: '/v1/images/generations', body: { model: parts.model, prompt: 'A gatehouse at dawn' } }),
    openaiPython(
      parts,
      `image = client.images.generate(model=${model}, prompt="A gatehouse at dawn")\nprint(image.data[0].url)`,
    ),
    openaiTypeScript(
      parts,
      `const image = await client.images.generate({ model: ${model}, prompt: 'A gatehouse at dawn' })\nconsole.log(image.data?.[0]?.url)`,
    ),
  ]
}

/** With a voice of the model; where it lists none, one that most know. */
function speech(parts: Parts): Sample[] {
  const { voices, formats } = parts.speech ?? {}
  const voice = voices?.[0] ?? 'alloy'
  const format = formats && !formats.includes('mp3') ? formats[0] : undefined
  const output = `speech.${format ?? 'mp3'}`
  const body = { model: parts.model, voice, input: 'Good morning.', ...(format && { response_format: format }) }
  const members = Object.entries(body).map(([name, value]) => [name, text(value)])
  const script = openaiTypeScript(
    parts,
    `const speech = await client.audio.speech.create({ ${members.map((pair) => pair.join(': ')).join(', ')} })\nawait writeFile('${output}', new Uint8Array(await speech.arrayBuffer()))`,
  )
  return [
    curl({ ...parts, path: '/v1/audio/speech', body, output }),
    openaiPython(
      parts,
      `speech = client.audio.speech.create(${members.map((pair) => pair.join('=')).join(', ')})\nspeech.write_to_file("${output}")`,
    ),
    { ...script, text: `import { writeFile } from 'node:fs/promises'\n${script.text}` },
  ]
}

const onlyCurl =
  (path: string, body: object) =>
  (parts: Parts): Sample[] => [curl({ ...parts, path, body: { model: parts.model, ...body } })]

const MAKERS: Record<string, (parts: Parts) => Sample[]> = {
  chatcompat: chat,
  'chatcompat-response': responses,
  'messages-compat': messages,
  'contentgen-compat': contentgen,
  embeddings,
  'image-generation': images,
  rerank: onlyCurl('/v1/rerank', { query: 'What guards a castle?', documents: ['A gatehouse', 'A garden'] }),
  moderations: onlyCurl('/v1/moderations', { input: 'Some text' }),
  'audio-speech': speech,
  'video-generation': onlyCurl('/v1/videos', { prompt: 'A gate that opens at dawn' }),
  '3d-generation': onlyCurl('/v1/3d/generations', { prompt: 'A small gatehouse' }),
}

/** The families with samples, in the order of the model's own list. */
export const sampleFamilies = (families: string[]): string[] => families.filter((family) => family in MAKERS)

export const samplesOf = (family: string, parts: Parts): Sample[] => MAKERS[family]?.(parts) ?? []
