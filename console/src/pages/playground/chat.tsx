/** Chat with up to four models side by side: one message goes to all of them. */
import { useState } from 'react'
import type { AdminModel } from '../../api/types.ts'
import { choice, several, text } from '../../lib/search.ts'
import { notify, notifyError } from '../../lib/toasts.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import type { Body } from './chat-body.ts'
import { chatBody } from './chat-body.ts'
import { ChatColumn } from './chat-column.tsx'
import { addFiles, ChatComposer } from './chat-composer.tsx'
import { ChatSettingsForm, settingsProblem } from './chat-settings.tsx'
import { ask, changeDraft, clearChat, hasRoom, removeColumn, retry, stop, useChat } from './chat-store.ts'
import type { ChatMessage, ChatSettings } from './chat-types.ts'
import { MAX_MESSAGES, MAX_MODELS } from './chat-types.ts'
import { CodeDialog } from './code-dialog.tsx'
import { CompareButton } from './compare-dialog.tsx'
import { useDrop } from './drop.ts'
import { CHAT, useFirstModels } from './family-parts.tsx'
import { useFollow } from './follow.ts'
import { type ModelFacts, useModelFacts } from './model-limits.ts'
import { useStoredChat } from './stored-request.ts'

/** As in the style sheet. */
const NARROW_PIXELS = 700

/** In the address: it has no contents, so that a link to it may be given to anybody. */
const READERS = {
  model: several(),
  request: text(),
  temperature: text(),
  top_p: text(),
  max_tokens: text(),
  seed: text(),
  stop: text(),
  effort: text(),
  format: choice(['text', 'json_object', 'json_schema'], 'text'),
}

export function Chat({ project }: { project: string }) {
  const { rows: usable, isLoading, error, reload } = useFirstModels(CHAT)
  if (isLoading) return <Loading />
  if (error) return <Failed error={error} onRetry={reload} />
  if (usable.length === 0)
    return <Empty title="There is no chat model">Add a provider whose models chat, or switch the sandbox on.</Empty>
  return <ChatOf usable={usable} project={project} />
}

function ChatOf({ usable, project }: { usable: AdminModel[]; project: string }) {
  const [address, change] = useAddress(READERS)
  const { columns, draft } = useChat()
  const [coded, setCoded] = useState<Body>()
  const stored = useStoredChat(address.request)
  const models = (address.model.length > 0 ? address.model : [usable[0]?.id ?? '']).slice(0, MAX_MODELS)
  const facts = useModelFacts(models)
  const settings: ChatSettings = { ...address, system: draft.system, tools: draft.tools, schema: draft.schema }
  const conversations = models.map((_, index) => columns[index] ?? [])
  const problem = settingsProblem(settings) ?? roomProblem(conversations)
  const isRunning = conversations.some(isAnswering)
  const bodyOf = (index: number) => (messages: ChatMessage[]) =>
    chatBody(models[index] ?? '', messages, { settings, limits: facts[index]?.limits ?? {} })
  // Columns below each other have no common end.
  const end = useFollow(columns, isRunning && (models.length === 1 || window.innerWidth > NARROW_PIXELS))
  const runOf = (column: number) => ({ column, project, bodyOf: bodyOf(column) })

  /** Buttons beside an answer are there while a setting is not valid. */
  const guarded = (act: () => void) => (problem === undefined ? act() : notifyError(problem))

  const onSend = () => {
    for (const index of models.keys()) ask({ role: 'user', text: draft.text, files: draft.files }, runOf(index))
    changeDraft({ text: '', files: [] })
  }
  const drop = useDrop((files) => void addFiles(draft.files, files))
  return (
    <div className="playground">
      <div className="playground-main" {...drop}>
        {stored && <p className="play-notice">{stored}</p>}
        <div className="row">
          <Button
            size="small"
            icon="plus"
            disabled={models.length >= MAX_MODELS}
            onClick={() => change({ model: [...models, nextModel(usable, models)] })}
          >
            Add model
          </Button>
          <CompareButton answers={lastAnswers(models, conversations)} />
          <Button size="small" icon="copy" onClick={() => void copyLink()}>
            Copy link
          </Button>
          <Button
            size="small"
            icon="trash"
            disabled={conversations.every(({ length }) => length === 0)}
            onClick={clearChat}
          >
            Clear
          </Button>
        </div>
        <div className="chat-columns" data-count={models.length}>
          {models.map((model, index) => (
            <ChatColumn
              // biome-ignore lint/suspicious/noArrayIndexKey: a column is its place; two may have one model
              key={index}
              place={index + 1}
              model={model}
              messages={conversations[index] ?? []}
              facts={facts[index] as ModelFacts}
              canClose={models.length > 1}
              onModel={(id) => change({ model: models.map((one, at) => (at === index ? id : one)).filter(Boolean) })}
              onClose={() => {
                removeColumn(index)
                change({ model: models.filter((_, at) => at !== index) })
              }}
              onStop={() => stop(index)}
              onRetry={() => guarded(() => retry(runOf(index)))}
              onCode={() => guarded(() => setCoded(bodyOf(index)(questionsOf(conversations[index] ?? []))))}
              onResults={(results) => guarded(() => ask({ role: 'tool', results }, runOf(index)))}
            />
          ))}
        </div>
        <div ref={end} className="chat-end" />
        <ChatComposer
          draft={draft}
          isRunning={isRunning}
          problem={problem}
          warning={filesWarning(draft.files.length, models, facts)}
          onSend={onSend}
        />
      </div>
      <aside className="playground-side" aria-label="Settings">
        <details className="play-settings" open>
          <summary>{models.length > 1 ? 'Settings of all models' : 'Settings'}</summary>
          <ChatSettingsForm settings={settings} models={models} facts={facts} onChange={change} />
        </details>
      </aside>
      {coded && <CodeDialog chat={coded} onClose={() => setCoded(undefined)} />}
    </div>
  )
}

const isAnswering = (messages: ChatMessage[]): boolean => {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.state === 'running'
}

const roomProblem = (conversations: ChatMessage[][]): string | undefined =>
  conversations.every(hasRoom)
    ? undefined
    : `A conversation has at most ${MAX_MESSAGES} messages. Clear it to begin another.`

/** Up to the last question: that call is made again. */
const questionsOf = (messages: ChatMessage[]): ChatMessage[] =>
  messages.slice(0, messages.findLastIndex(({ role }) => role !== 'assistant') + 1)

const lastAnswers = (models: string[], conversations: ChatMessage[][]) =>
  models.flatMap((model, index) => {
    const last = conversations[index]?.findLast(({ role }) => role === 'assistant')
    return last?.role === 'assistant' && last.text !== '' ? [{ label: `${index + 1}: ${model}`, text: last.text }] : []
  })

const nextModel = (usable: AdminModel[], models: string[]): string =>
  (usable.find(({ id }) => !models.includes(id)) ?? usable[0])?.id ?? ''

function filesWarning(files: number, models: string[], facts: ModelFacts[]): string | undefined {
  if (files === 0) return undefined
  const without = models.filter((_, index) => facts[index]?.capabilities.image_input === false)
  return without.length > 0 ? `${without.join(', ')} takes no images.` : undefined
}

/** The models, the parameters and the project; no message. */
async function copyLink(): Promise<void> {
  const link = new URL(location.href)
  link.searchParams.delete('request')
  await navigator.clipboard.writeText(link.href)
  notify('Link copied', 'It has the models and the parameters, and no messages.')
}
