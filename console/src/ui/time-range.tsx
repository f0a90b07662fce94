/** The range of time of a page, in its address: `range=24h`, or `from` and `to` in Unix seconds. */
import { useState } from 'react'
import { day } from '../lib/format.ts'
import { lastWeek, localText, secondsOf } from '../lib/local-time.ts'
import { choice, integer } from '../lib/search.ts'
import { useAddress } from './address.ts'
import { Button } from './button.tsx'
import { Dialog, DialogActs } from './dialog.tsx'
import { TextField } from './field.tsx'
import { useNow } from './now.ts'
import { Select } from './select.tsx'

const NAMES = ['1h', '6h', '24h', '7d', 'last-week', '30d', '90d', 'custom'] as const
type Name = (typeof NAMES)[number]
/** Ranges with a length; last week has days of its own. */
const RANGES: Record<Exclude<Name, 'custom' | 'last-week'>, { label: string; seconds: number }> = {
  '1h': { label: 'Last hour', seconds: 3_600 },
  '6h': { label: 'Last 6 hours', seconds: 21_600 },
  '24h': { label: 'Last 24 hours', seconds: 86_400 },
  '7d': { label: 'Last 7 days', seconds: 604_800 },
  '30d': { label: 'Last 30 days', seconds: 2_592_000 },
  '90d': { label: 'Last 90 days', seconds: 7_776_000 },
}
type Step = 'minute' | 'hour' | 'day'
const STEP_SECONDS: Record<Step, number> = { minute: 60, hour: 3_600, day: 86_400 }

export type TimeRange = {
  /** Unix seconds; whole steps, so that a page reads the same range again. */
  start: number
  end: number
  /** In which a chart of it is drawn. */
  step: Step
  step_seconds: number
  /** The range of the same length before it. */
  previous: { start: number; end: number }
  label: string
}

type Fallback = keyof typeof RANGES
const LAST_WEEK = 'Last week, Mon–Sun'

/** The range of the address. `fallback`: where the address has none. */
export function useTimeRange(fallback: Fallback = '24h'): TimeRange {
  const [{ range, from, to }] = useRangeAddress(fallback)
  const now = useNow()
  if (range === 'custom' && to > from) return rangeOf({ start: from, end: to, label: `${day(from)} – ${day(to)}` })
  if (range === 'last-week') return rangeOf({ ...lastWeek(now), label: LAST_WEEK })
  const { label, seconds } = RANGES[range === 'custom' ? fallback : range]
  const step = STEP_SECONDS[stepOf(seconds)]
  const end = Math.ceil(now / step) * step
  return rangeOf({ start: end - seconds, end, label })
}

const addressOf = (fallback: Name) => ({ range: choice(NAMES, fallback), from: integer(0), to: integer(0) })
const useRangeAddress = (fallback: Name) => useAddress(addressOf(fallback))
/** For a page that changes the range itself, such as by a selection in a chart. */
export const RANGE_ADDRESS = addressOf('24h')

const stepOf = (seconds: number): Step => (seconds <= 21_600 ? 'minute' : seconds <= 604_800 ? 'hour' : 'day')

function rangeOf({ start, end, label }: { start: number; end: number; label: string }): TimeRange {
  const length = end - start
  const step = stepOf(length)
  return { start, end, step, step_seconds: STEP_SECONDS[step], previous: { start: start - length, end: start }, label }
}

const labelOf = (name: Name): string =>
  name === 'custom' ? 'Other range…' : name === 'last-week' ? LAST_WEEK : RANGES[name].label

export function TimeRangeSelect({ fallback = '24h' }: { fallback?: Fallback }) {
  const [{ range, from, to }, change] = useRangeAddress(fallback)
  const [isOpen, setOpen] = useState(false)
  const options = NAMES.map((name) => ({ value: name, label: labelOf(name) }))
  const custom = range === 'custom' && to > from ? `${day(from)} – ${day(to)}` : undefined
  const shown = custom ? options.map((one) => (one.value === 'custom' ? { ...one, label: custom } : one)) : options
  return (
    <>
      <Select
        isCompact
        label="Time"
        value={range}
        options={custom ? [...shown, { value: 'another', label: 'Other range…' }] : shown}
        onChange={(value) => {
          if (value === 'custom' || value === 'another') setOpen(true)
          else change({ range: value as Name, from: 0, to: 0 }, { push: true })
        }}
      />
      {isOpen && (
        <CustomRange
          onClose={() => setOpen(false)}
          onChoose={(chosen) => {
            change({ range: 'custom', ...chosen }, { push: true })
            setOpen(false)
          }}
        />
      )}
    </>
  )
}

type CustomRangeProps = { onClose(): void; onChoose(range: { from: number; to: number }): void }

function CustomRange({ onClose, onChoose }: CustomRangeProps) {
  const now = useNow()
  const [from, setFrom] = useState(localText(now - 86_400))
  const [to, setTo] = useState(localText(now))
  const [start, end] = [secondsOf(from), secondsOf(to)]
  const isValid = start !== undefined && end !== undefined && end > start
  return (
    <Dialog open onClose={onClose} title="Choose a range" text="In your own time zone.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          if (isValid) onChoose({ from: start, to: end })
        }}
      >
        <TextField label="From" type="datetime-local" value={from} onChange={setFrom} required />
        <TextField
          label="To"
          type="datetime-local"
          value={to}
          onChange={setTo}
          required
          error={isValid ? undefined : 'The end must be after the start.'}
        />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!isValid}>
            Show
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
