/** The life of a model as a timeline, with the model that takes its place. */
import type { AdminModel } from '../../api/types.ts'
import { A } from '../../ui/button.tsx'
import { Card } from '../../ui/display.tsx'
import { useNow } from '../../ui/now.ts'
import { Time } from '../../ui/values.tsx'

type Step = { name: string; at: number | null; text: string }

export function ModelLifecycle({ model }: { model: AdminModel }) {
  const now = useNow()
  const { created, deprecated_at, retired_at, replaced_by, status } = model
  const steps: Step[] = [
    { name: 'In the catalogue', at: created, text: '' },
    ...(deprecated_at !== null || status === 'deprecated'
      ? [{ name: 'Deprecated', at: deprecated_at, text: 'It works; new work should use another.' }]
      : []),
    ...(retired_at !== null || status === 'retired'
      ? [{ name: 'Retired', at: retired_at, text: 'Requests for it are refused or redirected.' }]
      : []),
  ]
  return (
    <Card title="Lifecycle">
      <div className="stack-small">
        <ol className="timeline">
          {steps.map(({ name, at, text }) => (
            <li key={name} data-past={at === null || at <= now ? '' : undefined}>
              <div className="timeline-name">{name}</div>
              <div className="soft">{at === null ? 'since an unknown day' : <Time at={at} isRelative />}</div>
              <div className="faint">{text}</div>
            </li>
          ))}
        </ol>
        {replaced_by ? (
          <p>
            Its successor is <A to={`/models/${replaced_by}`}>{replaced_by}</A>.
          </p>
        ) : (
          steps.length === 1 && <p className="soft">No deprecation or retirement is known.</p>
        )}
      </div>
    </Card>
  )
}
