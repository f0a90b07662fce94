/** Asks a provider for its list of models, free of charge, and forgets what made its targets be avoided. */
import { useState } from 'react'
import { useAct } from '../../api/hooks.ts'
import type { ProviderTestResult } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Facts } from '../../ui/display.tsx'
import { FormError } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { Duration } from '../../ui/values.tsx'

export function ProviderTests({ id, keys }: { id: string; keys: string[] }) {
  const [key, setKey] = useState('')
  const test = useAct('POST /admin/v1/providers/{provider}/test', {
    showsError: true,
    changes: ['GET /admin/v1/providers'],
  })
  const reset = useAct('POST /admin/v1/providers/{provider}/reset', {
    changes: ['GET /admin/v1/providers', 'GET /admin/v1/models'],
    done: ({ reset: targets }) => `${targets} ${targets === 1 ? 'target starts' : 'targets start'} afresh`,
  })
  const params = { provider: id }
  return (
    <Card title="Test">
      <div className="stack-small">
        <p className="soft">Asks it for its list of models, which costs nothing.</p>
        <div className="row">
          {keys.length > 1 && (
            <Select
              isCompact
              label="Key"
              value={key}
              options={[{ value: '', label: 'first' }, ...keys.map((name) => ({ value: name, label: name }))]}
              onChange={setKey}
            />
          )}
          <Button
            icon="play"
            isBusy={test.isPending}
            onClick={() => test.mutate({ params, body: key === '' ? {} : { key } })}
          >
            Test
          </Button>
          <Button isBusy={reset.isPending} onClick={() => reset.mutate({ params, body: {} })}>
            Forget failures
          </Button>
        </div>
        <FormError error={test.error} />
        {test.data && <TestFacts report={test.data} />}
      </div>
    </Card>
  )
}

type Report = Pick<ProviderTestResult, 'result' | 'message' | 'models' | 'milliseconds'>

/** What a test has found. */
export const TestFacts = ({ report: { result, message, models, milliseconds } }: { report: Report }) => (
  <div role="status">
    <Facts
      rows={[
        [
          'Result',
          <Badge key="result" tone={result === 'ok' ? 'ok' : 'danger'}>
            {result}
          </Badge>,
        ],
        ['It says', message || undefined],
        ['Models', models ?? undefined],
        ['Took', <Duration key="took" ms={milliseconds} />],
      ]}
    />
  </div>
)
