/** Where a message is typed and sent to all models: Enter sends, Shift and Enter begin a new line. */
import { type KeyboardEvent, useRef } from 'react'
import { notifyError } from '../../lib/toasts.ts'
import { Button } from '../../ui/button.tsx'
import { Files } from './chat-message.tsx'
import { changeDraft, type Draft, stopAll } from './chat-store.ts'
import type { Attachment } from './chat-types.ts'
import { withFiles } from './files.ts'

type ComposerProps = {
  draft: Draft
  isRunning: boolean
  /** Why nothing can be sent now. */
  problem: string | undefined
  /** Such as that a model takes no images. */
  warning: string | undefined
  onSend(): void
}

const MAX_TEXT = 1_000_000

export const addFiles = (former: Attachment[], chosen: Iterable<File>): Promise<void> =>
  withFiles(former, chosen).then((files) => changeDraft({ files }), notifyError)

export function ChatComposer({ draft, isRunning, problem, warning, onSend }: ComposerProps) {
  const picker = useRef<HTMLInputElement>(null)
  const { text, files } = draft
  const canSend = !isRunning && problem === undefined && (text.trim() !== '' || files.length > 0)
  const add = (chosen: Iterable<File>) => addFiles(files, chosen)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    if (canSend) onSend()
  }
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        if (canSend) onSend()
      }}
    >
      {files.length > 0 && (
        <Files files={files} onRemove={(index) => changeDraft({ files: files.filter((_, at) => at !== index) })} />
      )}
      <textarea
        aria-label="Message"
        placeholder="Ask something…"
        rows={2}
        maxLength={MAX_TEXT}
        value={text}
        onChange={(event) => changeDraft({ text: event.target.value })}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          if (event.clipboardData.files.length > 0) void add(event.clipboardData.files)
        }}
      />
      <div className="row-between">
        <span className="row">
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => {
              void add(event.target.files ?? [])
              event.target.value = ''
            }}
          />
          <Button size="small" kind="plain" icon="plus" onClick={() => picker.current?.click()}>
            Add files
          </Button>
          <span className="small faint" role="status">
            {problem ?? warning ?? ''}
          </span>
        </span>
        {isRunning ? (
          <Button icon="stop" onClick={stopAll}>
            Stop
          </Button>
        ) : (
          <Button type="submit" kind="primary" icon="up" disabled={!canSend}>
            Send
          </Button>
        )}
      </div>
    </form>
  )
}
