/** The editor's text field: suggests keys and values of the schema at the cursor, by Ctrl-Space and while one types. */
import { type CSSProperties, type KeyboardEvent, useId, useRef, useState } from 'react'
import { Field } from '../../ui/field.tsx'
import { type Completion, completionAt, type Schema, type Suggestion } from './completion.ts'

type Open = Completion & { active: number; line: number; column: number; scroll_top: number; scroll_left: number }
type Parts = { label: string; value: string; schema: Schema | undefined; onChange(value: string): void }

/** The gateway takes no longer text. */
const MAX_LENGTH = 262_144

export function CodeArea({ label, value, schema, onChange }: Parts) {
  const area = useRef<HTMLTextAreaElement>(null)
  const [open, setOpen] = useState<Open>()
  const id = useId()
  const active = open?.suggestions[open.active]

  function suggestionsAt(isAsked: boolean): Open | undefined {
    const element = area.current
    if (!element || !schema || element.selectionStart !== element.selectionEnd) return undefined
    const { value: text, selectionStart: cursor, scrollTop: scroll_top, scrollLeft: scroll_left } = element
    const found = completionAt(schema, text, cursor)
    // What is typed completely needs no suggestion; an empty place only where somebody asks.
    const isWanted = isAsked || (found && found.typed !== '' && found.suggestions[0]?.insert !== found.typed)
    if (!found || !isWanted) return undefined
    const before = text.slice(0, found.from)
    const column = before.length - before.lastIndexOf('\n') - 1
    return { ...found, active: 0, line: before.split('\n').length, column, scroll_top, scroll_left }
  }

  function take({ insert }: Suggestion): void {
    const element = area.current
    if (!element || !open) return
    element.focus()
    element.setSelectionRange(open.from, open.to)
    // The only way that leaves the undo history of the field as it is; it makes an input event.
    document.execCommand('insertText', false, insert)
    setOpen(undefined)
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      setOpen(suggestionsAt(true))
      return
    }
    if (!open || event.ctrlKey || event.metaKey || event.altKey) return
    const move = (by: number) => {
      const count = open.suggestions.length
      setOpen({ ...open, active: (open.active + by + count) % count })
    }
    if (event.key === 'ArrowDown') move(1)
    else if (event.key === 'ArrowUp') move(-1)
    else if (event.key === 'Escape') setOpen(undefined)
    else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey && active) take(active)
    else {
      if (['ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp', 'PageDown'].includes(event.key)) setOpen(undefined)
      return
    }
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <Field
      label={label}
      help="Ctrl-Space suggests what fits at the cursor: arrow keys choose, Enter takes it, Escape closes the list."
    >
      {(control) => (
        <div className="code-area">
          <textarea
            {...control}
            ref={area}
            className="input"
            rows={26}
            value={value}
            spellCheck={false}
            autoCapitalize="off"
            maxLength={MAX_LENGTH}
            wrap="off"
            aria-autocomplete="list"
            aria-haspopup="listbox"
            aria-controls={open ? `${id}-list` : undefined}
            aria-activedescendant={open ? `${id}-${open.active}` : undefined}
            onKeyDown={onKeyDown}
            onBlur={() => setOpen(undefined)}
            onClick={() => setOpen(undefined)}
            onScroll={() => setOpen(undefined)}
            onChange={(event) => {
              onChange(event.target.value)
              const { inputType, data } = event.nativeEvent as InputEvent
              const isTyped = inputType === 'insertText' && /^[\w$]$/.test(data ?? '')
              const isWanted = isTyped || (open && inputType === 'deleteContentBackward')
              setOpen(isWanted ? suggestionsAt(false) : undefined)
            }}
          />
          {open && (
            <div className="popup code-suggestions" style={positionOf(open)}>
              <div id={`${id}-list`} role="listbox" aria-label="Suggestions">
                {open.suggestions.map((one, index) => (
                  // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field, which keeps the focus
                  <div
                    key={one.label}
                    id={`${id}-${index}`}
                    role="option"
                    tabIndex={-1}
                    className="item mono"
                    aria-selected={index === open.active}
                    data-highlighted={index === open.active ? '' : undefined}
                    ref={index === open.active ? showIt : undefined}
                    onMouseDown={(event) => event.preventDefault()}
                    onClick={() => take(one)}
                  >
                    {one.label}
                  </div>
                ))}
              </div>
              {active?.note && <p className="code-note small soft">{active.note}</p>}
            </div>
          )}
          <span className="hidden-text" role="status">
            {open && `${open.suggestions.length} suggestions. ${active?.label}: ${active?.note}`}
          </span>
        </div>
      )}
    </Field>
  )
}

const showIt = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' })

const positionOf = ({ line, column, scroll_top, scroll_left }: Open) =>
  ({
    '--code-line': line,
    '--code-column': column,
    '--code-top': `${scroll_top}px`,
    '--code-left': `${scroll_left}px`,
  }) as CSSProperties
