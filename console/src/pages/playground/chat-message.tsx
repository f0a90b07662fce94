/** One message of a conversation: a question with its files, results of tools, or an answer with what it took. */
import { memo, useState } from 'react'
import type { ModelPrice } from '../../api/types.ts'
import { webAddress } from '../../lib/foreign-address.ts'
import { bytes, count, duration, money } from '../../lib/format.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge, Code } from '../../ui/display.tsx'
import { TextArea } from '../../ui/field.tsx'
import { AnswerText } from './answer-text.tsx'
import type { Answer, Attachment, ChatMessage, Source, ToolCall, ToolResult } from './chat-types.ts'
import { costOf } from './model-limits.ts'

type MessageProps = {
  message: ChatMessage
  price: ModelPrice | null
  /** Present where the answer is the last one and waits for results of tools. */
  onResults?: ((results: ToolResult[]) => void) | undefined
}

/** Only the message that changes is drawn again. */
export const MessageView = memo(function MessageView({ message, price, onResults }: MessageProps) {
  if (message.role === 'assistant') return <AnswerView answer={message} price={price} onResults={onResults} />
  if (message.role === 'tool')
    return (
      <article className="chat-turn" data-role="tool">
        <h3>Tool results</h3>
        {message.results.map(({ id, name, text }) => (
          <Code key={id} label={`result of ${name}`} text={text} wraps />
        ))}
      </article>
    )
  return (
    <article className="chat-turn" data-role="user">
      <h3>You</h3>
      {message.text !== '' && <p className="message-text">{message.text}</p>}
      {message.files.length > 0 && <Files files={message.files} />}
    </article>
  )
})

export function Files({ files, onRemove }: { files: Attachment[]; onRemove?: (index: number) => void }) {
  return (
    <ul className="play-files" aria-label="Files">
      {files.map(({ name, type, size, data_url }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be there twice
        <li key={`${name} ${index}`} className="play-file">
          {type.startsWith('image/') && <img src={data_url} alt="" />}
          <span className="cut">{name}</span>
          <span className="faint small">{bytes(size)}</span>
          {onRemove && (
            <Button
              size="small"
              kind="plain"
              icon="close"
              aria-label={`Remove ${name}`}
              onClick={() => onRemove(index)}
            />
          )}
        </li>
      ))}
    </ul>
  )
}

function AnswerView({ answer, price, onResults }: Omit<MessageProps, 'message'> & { answer: Answer }) {
  const { state, text, reasoning, tool_calls, sources, error } = answer
  return (
    <article className="chat-turn" data-role="answer" aria-busy={state === 'running'}>
      <h3 className="row">
        Answer
        {state === 'stopped' && <Badge tone="warn">stopped</Badge>}
        {state === 'failed' && <Badge tone="danger">failed</Badge>}
      </h3>
      {reasoning !== '' && (
        <details className="chat-reasoning" open={text === '' || undefined}>
          <summary>Reasoning</summary>
          <p className="message-text">{reasoning}</p>
        </details>
      )}
      {text !== '' && <AnswerText text={text} />}
      {sources.length > 0 && <Sources sources={sources} />}
      {state === 'running' && text === '' && reasoning === '' && tool_calls.length === 0 && (
        <p className="faint">Waiting for the first token…</p>
      )}
      {tool_calls.map(({ id, name, arguments: given }) => (
        <div key={id || name} className="stack-small">
          <span className="small soft">
            calls <b>{name}</b>
          </span>
          <Code label={`arguments of ${name}`} text={pretty(given)} wraps />
        </div>
      ))}
      {onResults && tool_calls.length > 0 && state === 'done' && <Results calls={tool_calls} onResults={onResults} />}
      {error && (
        <p className="form-error" role="alert">
          {error.message} <span className="mono small">{error.code}</span>
        </p>
      )}
      {state !== 'running' && <Figures answer={answer} price={price} />}
    </article>
  )
}

/** Links that name their host, since the title is the provider's. Nothing of them is loaded. */
function Sources({ sources }: { sources: readonly Source[] }) {
  return (
    <section className="stack-small" aria-label="Sources">
      <span className="small soft">Sources</span>
      <ol className="answer-list answer-sources small" data-ordered="">
        {sources.map(({ url, title }) => {
          const address = webAddress(url)
          return (
            <li key={url}>
              {address ? (
                <a href={address.href} target="_blank" rel="noreferrer noopener" title={address.href}>
                  {title || address.pathname}
                </a>
              ) : (
                <span>{title || url}</span>
              )}{' '}
              <span className="faint">{address ? address.host : 'no address of the web'}</span>
            </li>
          )
        })}
      </ol>
    </section>
  )
}

/** What the answer took: time, tokens, cost, and where the log has it. */
function Figures({ answer, price }: { answer: Answer; price: ModelPrice | null }) {
  const { usage, first_ms, total_ms, finish_reason, request_id } = answer
  const cost = usage ? costOf(usage, price) : undefined
  return (
    <p className="figures">
      {first_ms !== null && <span title="Until the first token">{duration(first_ms)} to first</span>}
      {total_ms !== null && <span title="Until the end of the answer">{duration(total_ms)}</span>}
      {usage && (
        <span title={usage.cached > 0 ? `${count(usage.cached)} of the input from the cache` : undefined}>
          {count(usage.input)} in · {count(usage.output)} out
          {usage.reasoning > 0 && ` (${count(usage.reasoning)} reasoning)`}
        </span>
      )}
      {cost !== undefined && <span title="By the listed prices; the request has what was charged">{money(cost)}</span>}
      {finish_reason && finish_reason !== 'stop' && <span>{finish_reason}</span>}
      {request_id && (
        <A to="/requests" search={{ request_id }}>
          Request
        </A>
      )}
    </p>
  )
}

function Results({ calls, onResults }: { calls: ToolCall[]; onResults(results: ToolResult[]): void }) {
  const [texts, setTexts] = useState<string[]>(calls.map(() => ''))
  return (
    <form
      className="stack-small"
      onSubmit={(event) => {
        event.preventDefault()
        onResults(calls.map(({ id, name }, index) => ({ id, name, text: texts[index] ?? '' })))
      }}
    >
      {calls.map(({ id, name }, index) => (
        <TextArea
          key={id || name}
          label={`Result of ${name}`}
          rows={2}
          maxLength={100_000}
          value={texts[index] ?? ''}
          onChange={(text) => setTexts(texts.map((former, at) => (at === index ? text : former)))}
        />
      ))}
      <div>
        <Button type="submit" size="small">
          Send results
        </Button>
      </div>
    </form>
  )
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}
