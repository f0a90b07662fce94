/** Components that show data: cards, figures, badges, lists of facts, code, meters. */
import type { CSSProperties, ReactNode } from 'react'
import { useState } from 'react'
import { IconButton } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

export type Tone = 'ok' | 'warn' | 'danger' | 'info' | 'plain'

export function Badge({ tone = 'plain', children, icon }: { tone?: Tone; children: ReactNode; icon?: IconName }) {
  return (
    <span className="badge" data-tone={tone}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  )
}

type CardProps = { title?: ReactNode; acts?: ReactNode; children: ReactNode; isFlush?: boolean }

/** `isFlush`: for a table, which reaches the edges. */
export function Card({ title, acts, children, isFlush = false }: CardProps) {
  return (
    <section className="card">
      {(title || acts) && (
        <div className="card-head">
          {title && <h2>{title}</h2>}
          {acts && <div className="row">{acts}</div>}
        </div>
      )}
      <div className="card-body" data-flush={isFlush || undefined}>
        {children}
      </div>
    </section>
  )
}

/** A row of figures: `Stat`s. */
export const Stats = ({ children }: { children: ReactNode }) => <dl className="stats">{children}</dl>

type StatProps = {
  label: string
  value: ReactNode
  /** Such as the value of the range before. */
  note?: ReactNode
  /** Whether the note is good news. */
  isGood?: boolean | undefined
}

export function Stat({ label, value, note, isGood }: StatProps) {
  return (
    <div className="stat">
      <dt>{label}</dt>
      <dd>
        {value}
        {note !== undefined && (
          <div className="stat-note" data-good={isGood}>
            {note}
          </div>
        )}
      </dd>
    </div>
  )
}

/** Facts of one object, as names and values; what is undefined is left out. */
export function Facts({ rows }: { rows: [name: string, value: ReactNode][] }) {
  return (
    <dl className="facts">
      {rows
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => [<dt key={`${name}:`}>{name}</dt>, <dd key={name}>{value ?? <Nothing />}</dd>])}
    </dl>
  )
}

/** A value that is not there. */
export const Nothing = ({ text = 'none' }: { text?: string }) => <span className="faint">{text}</span>

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_600)
  }
  return (
    <IconButton
      size="small"
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? 'Copied' : label}
      onClick={() => void copy()}
    />
  )
}

type CodeProps = { text: string; label: string; wraps?: boolean }

/** Code or other text as it is, with a button that copies it. `label`: its name for screen readers. */
export function Code({ text, label, wraps = false }: CodeProps) {
  return (
    <section className="code" data-wrap={wraps || undefined} aria-label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={`Copy ${label}`} />
    </section>
  )
}

/** An id with a button that copies it. */
export const CopyableId = ({ id }: { id: string }) => (
  <span className="copied">
    <span className="mono wrap">{id}</span>
    <CopyButton text={id} />
  </span>
)

type MeterProps = {
  label: string
  value: number
  max: number
  text?: string
  /** Of work, which is meant to become full. */
  isProgress?: boolean
}

/** How much of a limit is used: warns from 80 % on. */
export function Meter({ label, value, max, text, isProgress = false }: MeterProps) {
  const part = max > 0 ? value / max : 0
  const tone = isProgress ? undefined : part >= 1 ? 'danger' : part >= 0.8 ? 'warn' : undefined
  const style = { '--fill': `${Math.min(100, part * 100)}%` } as CSSProperties
  return (
    // biome-ignore lint/a11y/useSemanticElements: a <meter> cannot be styled under every engine
    <span
      className="meter"
      role="meter"
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={0}
      aria-valuemax={Math.max(max, value)}
      aria-valuetext={text}
    >
      <span className="meter-fill" data-tone={tone} style={style} />
    </span>
  )
}
