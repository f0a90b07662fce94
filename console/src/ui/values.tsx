/** Numbers, money and times of a page; each shows its exact value when pointed at. */
import * as format from '../lib/format.ts'
import { Nothing } from './display.tsx'
import { useNow } from './now.ts'

type Value = number | null | undefined

export const Count = ({ value, isShort = false }: { value: Value; isShort?: boolean }) =>
  value === null || value === undefined ? (
    <Nothing text="–" />
  ) : (
    <span title={isShort ? format.count(value) : undefined}>
      {isShort ? format.shortCount(value) : format.count(value)}
    </span>
  )

export const Money = ({ value, currency }: { value: Value; currency?: string }) =>
  value === null || value === undefined ? (
    <Nothing text="–" />
  ) : (
    <span title={String(value)}>{format.money(value, currency)}</span>
  )

export const Duration = ({ ms }: { ms: Value }) =>
  ms === null || ms === undefined ? <Nothing text="–" /> : <span title={`${ms} ms`}>{format.duration(ms)}</span>

export const Bytes = ({ value }: { value: Value }) =>
  value === null || value === undefined ? (
    <Nothing text="–" />
  ) : (
    <span title={`${format.count(value)} bytes`}>{format.bytes(value)}</span>
  )

/** A moment in the viewer's zone, with UTC when pointed at. `at`: Unix seconds. */
export const Time = ({ at, isRelative = false }: { at: Value; isRelative?: boolean }) => {
  if (at === null || at === undefined) return <Nothing text="–" />
  return isRelative ? <Ago at={at} /> : <Moment at={at} text={format.time(at)} />
}

/** The same without today's date or this year, for the rows of a list. */
export const ShortTime = ({ at }: { at: number }) => (
  <Moment at={at} text={format.shortTime(at)} title={`${format.time(at)} (${format.utc(at)})`} />
)

function Ago({ at }: { at: number }) {
  return <Moment at={at} text={format.ago(at, useNow())} title={`${format.time(at)} (${format.utc(at)})`} />
}

const Moment = ({ at, text, title = format.utc(at) }: { at: number; text: string; title?: string }) => (
  <time dateTime={new Date(at * 1000).toISOString()} title={title}>
    {text}
  </time>
)
