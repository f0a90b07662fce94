/** One model of the chat: which it is, its conversation, and what can be done with it. */
import { Button, IconButton } from '../../ui/button.tsx'
import { ModelField } from '../../ui/model-field.tsx'
import { MessageView } from './chat-message.tsx'
import type { ChatMessage, ToolResult } from './chat-types.ts'
import { CHAT } from './family-parts.tsx'
import type { ModelFacts } from './model-limits.ts'

type ColumnProps = {
  place: number
  model: string
  messages: ChatMessage[]
  facts: ModelFacts
  canClose: boolean
  onModel(model: string): void
  onClose(): void
  onStop(): void
  onRetry(): void
  onCode(): void
  onResults(results: ToolResult[]): void
}

export function ChatColumn(props: ColumnProps) {
  const { place, model, messages, facts, canClose } = props
  const last = messages.at(-1)
  const isRunning = last?.role === 'assistant' && last.state === 'running'
  return (
    <section className="chat-column" aria-label={`Model ${place}: ${model}`}>
      <div className="chat-column-head">
        <ModelField
          isCallable
          label={`Model ${place}`}
          value={model}
          family={CHAT}
          placeholder="Choose a model"
          onChange={props.onModel}
        />
        {canClose && <IconButton icon="close" label={`Close model ${place}`} onClick={props.onClose} />}
      </div>
      <div className="chat-turns">
        {messages.length === 0 && <p className="faint chat-empty">Answers of this model appear here.</p>}
        {messages.map((message, index) => (
          <MessageView
            // biome-ignore lint/suspicious/noArrayIndexKey: messages have no id, and are added at the end
            key={index}
            message={message}
            price={facts.price}
            onResults={index === messages.length - 1 ? props.onResults : undefined}
          />
        ))}
      </div>
      {messages.length > 0 && (
        <div className="row chat-column-acts">
          {isRunning ? (
            <Button size="small" icon="stop" onClick={props.onStop}>
              Stop model {place}
            </Button>
          ) : (
            <Button size="small" icon="refresh" onClick={props.onRetry}>
              Retry
            </Button>
          )}
          <Button size="small" icon="code" onClick={props.onCode}>
            Code
          </Button>
        </div>
      )}
    </section>
  )
}
