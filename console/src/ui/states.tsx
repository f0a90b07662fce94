/** The states of a page besides its data: loading, empty, failed. */
import type { ReactNode } from 'react'
import { ApiError } from '../api/client.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

/** `lines`: about as high as what will stand there. */
export function Loading({ lines = 5 }: { lines?: number }) {
  return (
    <div className="skeletons" role="status">
      <span className="hidden-text">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same
        <span key={index} className="skeleton" />
      ))}
    </div>
  )
}

type EmptyProps = {
  title: string
  /** What to do to have something here. */
  children?: ReactNode
  acts?: ReactNode
  icon?: IconName
}

export function Empty({ title, children, acts, icon = 'list' }: EmptyProps) {
  return (
    <div className="state">
      <Icon name={icon} />
      <h3>{title}</h3>
      {children && <div className="state-text">{children}</div>}
      {acts && <div className="row state-acts">{acts}</div>}
    </div>
  )
}

export function Failed({ error, onRetry }: { error: Error; onRetry?: (() => void) | undefined }) {
  const isForbidden = error instanceof ApiError && error.status === 403
  const isMissing = error instanceof ApiError && error.status === 404
  const title = isForbidden ? 'You may not see this' : isMissing ? 'There is no such thing' : 'This could not be loaded'
  return (
    <div className="state" role="alert">
      <Icon name={isForbidden ? 'key' : 'alert'} />
      <h3>{title}</h3>
      <p className="state-text">{error.message}</p>
      {error instanceof ApiError && error.request_id && (
        <p className="faint small">
          Request <span className="mono">{error.request_id}</span>
        </p>
      )}
      {onRetry && !isForbidden && !isMissing && (
        <div className="state-acts">
          <Button icon="refresh" onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  )
}

type LoadedProps<Data> = {
  query: { data: Data | undefined; error: Error | null; isPending: boolean; refetch(): unknown }
  children(data: Data): ReactNode
  lines?: number
}

/** The data of a query, or its loading or failed state. Old data stand while new ones cannot be read. */
export function Loaded<Data>({ query, children, lines }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <Failed error={query.error} onRetry={() => query.refetch()} />
  return <Loading {...(lines !== undefined && { lines })} />
}
