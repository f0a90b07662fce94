/** Shows the changes that a draft of a provider makes to the configuration, and writes them; where that is not possible, the text to copy. */
import { useState } from 'react'
import { useAct } from '../../api/hooks.ts'
import type { Api, ProviderDraft } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Code } from '../../ui/display.tsx'
import { FormError } from '../../ui/field.tsx'

type Difference = Api['POST /admin/v1/provider-drafts/diff']['response']

/** `onDone`: after it is written. */
export function DraftApply({ draft, disabled, onDone }: { draft: ProviderDraft; disabled: boolean; onDone(): void }) {
  const [compared, setCompared] = useState<string>()
  const compare = useAct('POST /admin/v1/provider-drafts/diff', { showsError: true })
  const apply = useAct('POST /admin/v1/provider-drafts/apply', {
    changes: ['GET /admin/v1/providers', 'GET /admin/v1/models', 'GET /admin/v1/config'],
    isLate: true,
    done: ({ needs_restart }) =>
      needs_restart.length === 0 ? 'The configuration is written' : 'Written; some settings wait for the next start',
    onDone,
    showsError: true,
  })
  const present = JSON.stringify(draft)
  // What was compared is not what would be written after another change.
  const difference = compared === present ? compare.data : undefined
  const review = () => {
    apply.reset()
    setCompared(present)
    compare.mutate({ body: draft })
  }
  return (
    <div className="stack">
      <div className="row">
        <Button
          {...(difference ? {} : { kind: 'primary' as const })}
          onClick={review}
          isBusy={compare.isPending}
          disabled={disabled}
        >
          Show what would change
        </Button>
      </div>
      {compared === present && <FormError error={compare.error} />}
      {difference && (
        <>
          <Changes difference={difference} />
          <FormError error={apply.error} />
          {difference.reason === null && (
            <div className="row">
              <Button
                kind="primary"
                isBusy={apply.isPending}
                onClick={() => apply.mutate({ body: { ...draft, base: difference.version } })}
              >
                Write it
              </Button>
              <span className="soft">
                Into {difference.file}, with a backup beside it. The gateway applies it within seconds.
              </span>
            </div>
          )}
        </>
      )}
    </div>
  )
}

const Changes = ({ difference: { reason, yaml, changes } }: { difference: Difference }) => (
  <section className="stack-small" aria-label="What would change">
    {reason !== null && (
      <p role="status">
        <Badge tone="warn">not written by the gateway</Badge> {reason} Keys are shown as ***.
      </p>
    )}
    {reason === null && (
      <p className="soft" role="status">
        {changes.length} {changes.length === 1 ? 'setting differs' : 'settings differ'}. Keys are shown as ***.
      </p>
    )}
    <Code label="configuration" text={yaml} />
  </section>
)
