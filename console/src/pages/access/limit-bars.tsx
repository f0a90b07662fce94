/** Bars of what is used of limits and budgets. */
import type { ReactNode } from 'react'
import type { BudgetState, RateLimitState } from '../../api/types.ts'
import { count, money } from '../../lib/format.ts'
import { Meter } from '../../ui/display.tsx'
import { Time } from '../../ui/values.tsx'
import { limitName, windowName } from './draft.ts'

export function RateLimitBars({ limits }: { limits: RateLimitState[] }) {
  if (limits.length === 0) return <p className="soft">No rate limit is set.</p>
  return (
    <ul className="access-bars">
      {limits.map(({ limit, amount, remaining }) => {
        const used = Math.max(0, amount - remaining)
        const text = `${count(used)} of ${count(amount)}`
        return <Bar key={limit} name={limitName(limit)} value={used} max={amount} text={text} />
      })}
    </ul>
  )
}

export function BudgetBars({ budgets, currency }: { budgets: BudgetState[]; currency: string }) {
  if (budgets.length === 0) return <p className="soft">No budget is set.</p>
  return (
    <ul className="access-bars">
      {budgets.map((budget) => (
        <Bar
          key={`${budget.window} ${budget.amount} ${budget.starts_at}`}
          name={`Budget of ${money(budget.amount, currency)} ${windowName(budget.window)}${budget.soft ? ' (only warns)' : ''}`}
          value={budget.used + budget.held - budget.credit}
          max={budget.amount}
          text={`${money(budget.used - budget.credit, currency)} used, ${money(budget.remaining, currency)} left`}
          note={<WindowEnd end={budget.window_end} />}
        />
      ))}
    </ul>
  )
}

export const WindowEnd = ({ end }: { end: number | null }) =>
  end === null ? (
    <span className="faint">never ends</span>
  ) : (
    <span className="faint">
      ends <Time at={end} isRelative />
    </span>
  )

type BarProps = { name: string; value: number; max: number; text: string; note?: ReactNode }

function Bar({ name, value, max, text, note }: BarProps) {
  return (
    <li>
      <div className="row-between">
        <span>{name}</span>
        <span className="soft">{text}</span>
      </div>
      <Meter label={name} value={value} max={max} text={text} />
      {note}
    </li>
  )
}
