/** Shows what a moderation model finds in a text. */
import { useState } from 'react'
import { Badge, Meter } from '../../ui/display.tsx'
import { TextArea } from '../../ui/field.tsx'
import { type FamilyProps, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { useCall } from './use-call.ts'

type Verdict = { flagged: boolean; categories: Record<string, boolean>; category_scores: Record<string, number> }
type Response = { results: Verdict[] }

export function Moderation({ model, family, project, stored, onModel }: FamilyProps) {
  const [input, setInput] = useState(stored.join('\n'))
  const { called, error, isRunning, run, stop } = useCall<Response>()
  const call = { path: '/v1/moderations', body: { model, input } }
  const verdict = called?.data.results[0]
  return (
    <div className="play-order">
      <OrderForm
        act="Check"
        call={call}
        isRunning={isRunning}
        problem={input.trim() === '' ? 'Type a text.' : undefined}
        error={error}
        onSubmit={() => void run({ ...call, project })}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextArea label="Text" rows={6} maxLength={100_000} value={input} onChange={setInput} />
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="The categories with their scores appear here.">
        {verdict && <Categories verdict={verdict} />}
      </Result>
    </div>
  )
}

function Categories({ verdict: { flagged, categories, category_scores } }: { verdict: Verdict }) {
  const rows = Object.entries(category_scores).sort(([, one], [, other]) => other - one)
  return (
    <>
      <p>{flagged ? <Badge tone="danger">flagged</Badge> : <Badge tone="ok">not flagged</Badge>}</p>
      <ul className="play-scores">
        {rows.map(([name, score]) => (
          <li key={name} className="play-score">
            <span className="row">
              {name}
              {categories[name] && <Badge tone="danger">yes</Badge>}
            </span>
            <span className="play-score-value">
              <Meter label={`Score of ${name}`} value={score} max={1} />
              {score.toFixed(3)}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}
