/** The prompt and the response of a request, where they are stored. They are read only when somebody asks for them. */
import { useState } from 'react'
import { ApiError, call } from '../../api/client.ts'
import { useMe } from '../../api/hooks.ts'
import type { ContentsPart, Request, RequestContents } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Code } from '../../ui/display.tsx'
import { Failed } from '../../ui/states.tsx'

type ContentsProps = {
  request: Request
  contents: RequestContents | undefined
  onContents(contents: RequestContents): void
}

export function Contents({ request, contents, onContents }: ContentsProps) {
  const me = useMe()
  const [error, setError] = useState<Error>()
  const [isReading, setReading] = useState(false)
  if (!me?.rights.includes('contents') || request.model === '') return null
  const read = async () => {
    setReading(true)
    setError(undefined)
    try {
      const params = { request_row: request.id }
      onContents(await call('GET /admin/v1/requests/{request_row}/contents', { params }))
    } catch (fault) {
      setError(fault instanceof Error ? fault : new Error(String(fault)))
    } finally {
      setReading(false)
    }
  }
  const isMissing = error instanceof ApiError && error.status === 404
  return (
    <Card title="Contents">
      {contents ? (
        <Messages contents={contents} />
      ) : isMissing ? (
        <p className="soft">
          The prompt and the response of this request are not stored. Whether they are is set by <code>contents</code>{' '}
          of a project or a token.
        </p>
      ) : error ? (
        <Failed error={error} onRetry={() => void read()} />
      ) : (
        <div className="row-between">
          <p className="soft">
            The prompt and the response, if they were stored. Reading them is recorded in the audit log.
          </p>
          <Button onClick={() => void read()} isBusy={isReading}>
            Show contents
          </Button>
        </div>
      )}
    </Card>
  )
}

function Messages({ contents: { input, output, is_cut, note } }: { contents: RequestContents }) {
  return (
    <div className="stack-small">
      {is_cut && <p className="soft">Some of it was too long, and was left out.</p>}
      {input.map(({ role, parts }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages have no id, and their order never changes
        <Message key={`in ${index}`} speaker={role} parts={parts} />
      ))}
      {output?.map(({ index, finish_reason, parts }) => (
        <Message key={`out ${index}`} speaker="response" parts={parts} note={finish_reason} />
      ))}
      {output === null && <p className="soft">{note ?? 'There is no response.'}</p>}
    </div>
  )
}

type MessageProps = { speaker: string; parts: ContentsPart[]; note?: string | null }

const Message = ({ speaker, parts, note = null }: MessageProps) => (
  <article className="message" data-role={speaker === 'response' ? 'response' : undefined}>
    <h3 className="row">
      {speaker}
      {note && <Badge>{note}</Badge>}
    </h3>
    {parts.map(({ type, name, text }, index) => {
      const key = `${type} ${index}`
      if (type === 'text')
        return (
          <p key={key} className="message-text">
            {text}
          </p>
        )
      if (text === undefined) return <Badge key={key}>{type}</Badge>
      return (
        <div key={key} className="stack-small">
          <span className="faint small">{[type.replaceAll('_', ' '), name].filter(Boolean).join(' · ')}</span>
          <Code label={name ?? type} text={text} wraps />
        </div>
      )
    })}
  </article>
)
