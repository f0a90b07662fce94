/** How a request would be routed: the plan of its model, and its targets in the order in which they are tried. */
import { useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { RoutingExplanation } from '../../api/types.ts'
import { flag, text } from '../../lib/search.ts'
import { ForbiddenPage } from '../../shell/error-page.tsx'
import { seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Facts, Nothing } from '../../ui/display.tsx'
import { Checkbox, FormError, TextArea, TextField } from '../../ui/field.tsx'
import { ModelField } from '../../ui/model-field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Duration, Money } from '../../ui/values.tsx'

export function RoutingPage() {
  const me = useMe()
  return me && !seesAll(me) ? <ForbiddenPage title="Routing" /> : <Routing />
}

function Routing() {
  const [{ model, tags, stream }, change] = useAddress({ model: text(), tags: text(), stream: flag() })
  const [body, setBody] = useState('')
  const [problem, setProblem] = useState<string>()
  const explain = useAct('POST /admin/v1/routing/explain', { showsError: true })
  const ask = () => {
    const parsed = parse(body)
    setProblem(parsed.problem)
    if (parsed.problem !== undefined) return
    const given = tags
      .split(',')
      .map((tag) => tag.trim())
      .filter(Boolean)
    explain.mutate({
      body: { model, stream, ...(given.length > 0 && { tags: given }), ...(parsed.value && { body: parsed.value }) },
    })
  }
  return (
    <>
      <PageHead title="Routing" note="How the gateway would route a request now. No call is made." />
      <div className="stack">
        <Card title="Request">
          <form
            className="form"
            onSubmit={(event) => {
              event.preventDefault()
              ask()
            }}
          >
            <ModelField placeholder="Find a model" value={model} onChange={(value) => change({ model: value })} />
            <TextField
              label="Tags"
              help="Separated by commas."
              value={tags}
              onChange={(value) => change({ tags: value })}
            />
            <Checkbox label="Streamed" checked={stream} onChange={(value) => change({ stream: value })} />
            <TextArea
              label="Body"
              help="Optional JSON: conditions on its size, tools and images are then decided."
              rows={4}
              value={body}
              onChange={setBody}
              error={problem}
              spellCheck={false}
            />
            <FormError error={explain.error} />
            <div>
              <Button type="submit" kind="primary" isBusy={explain.isPending} disabled={model === ''}>
                Explain
              </Button>
            </div>
          </form>
        </Card>
        {explain.data && <Explanation explanation={explain.data} />}
      </div>
    </>
  )
}

/** The value of a JSON object; undefined: nothing was typed. */
function parse(given: string): { value?: Record<string, unknown>; problem: string | undefined } {
  if (given.trim() === '') return { problem: undefined }
  try {
    const value: unknown = JSON.parse(given)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { value: value as Record<string, unknown>, problem: undefined }
    return { problem: 'The body must be a JSON object.' }
  } catch (error) {
    return { problem: `The body is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

type Explained = RoutingExplanation['targets'][number]

const COLUMNS: Column<Explained>[] = [
  { key: 'order', head: 'Order', cell: ({ order }) => order ?? <Nothing text="–" />, isNumber: true },
  { key: 'target', head: 'Target', cell: ({ target, key }) => (key ? `${target} with ${key}` : target) },
  {
    key: 'available',
    head: 'Can be tried',
    cell: ({ available, reason }) => (
      <Badge tone={available ? 'ok' : 'danger'}>{available ? 'yes' : (reason ?? 'no')}</Badge>
    ),
  },
  { key: 'priority', head: 'Priority', cell: ({ priority }) => priority, isNumber: true },
  { key: 'weight', head: 'Weight', cell: ({ weight }) => weight, isNumber: true },
  { key: 'latency', head: 'First byte', cell: ({ latency_ms }) => <Duration ms={latency_ms} />, isNumber: true },
  { key: 'open', head: 'Open', cell: ({ open_calls }) => open_calls, isNumber: true },
  { key: 'cost', head: 'Expected cost', cell: ({ expected_cost }) => <Money value={expected_cost} />, isNumber: true },
]

function Explanation({ explanation }: { explanation: RoutingExplanation }) {
  const { requested, model, family, status, strategy, sticky, hedge, tries, deadline_seconds, plan, fallbacks, order } =
    explanation
  const others = Object.entries(fallbacks).map(([reason, names]) => `${reason}: ${names.join(', ')}`)
  return (
    <>
      <Card title="Plan">
        <Facts
          rows={[
            ['Model', model === requested ? model : `${model}, asked for as ${requested}`],
            ['Family', family],
            ['Status', status],
            ['Checks before the call', plan.gates.join(', ') || <Nothing key="gates" />],
            ['Cache', plan.cache],
            ['Strategy', strategy],
            ['Sticky by', sticky],
            ['Hedged', hedge ? 'yes' : 'no'],
            ['Tries', tries],
            ['Deadline', deadline_seconds === null ? null : `${deadline_seconds} s`],
            ['Fallbacks', others.join('; ') || null],
          ]}
        />
      </Card>
      <Card title="Targets" isFlush>
        <Table
          label="Targets"
          columns={COLUMNS}
          rows={explanation.targets}
          keyOf={({ target, key }) => `${target} ${key}`}
          foot={order}
        />
      </Card>
    </>
  )
}
