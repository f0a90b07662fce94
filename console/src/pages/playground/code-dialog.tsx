/** Shows a call as code that makes the same one: a conversation in each API of chat, and calls of every other kind. */
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Code } from '../../ui/display.tsx'
import { Select } from '../../ui/select.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { callCode } from './call-code.ts'
import type { Body } from './chat-body.ts'
import { codeOf, LANGUAGES, type Language } from './code-text.ts'
import { DIALECTS, type Dialect } from './dialects.ts'
import type { PlaygroundCall } from './use-call.ts'

type CodeDialogProps = { onClose(): void } & ({ chat: Body } | { call: PlaygroundCall })

export function CodeDialog({ onClose, ...of }: CodeDialogProps) {
  const [dialect, setDialect] = useState<Dialect>('chatcompat')
  const [language, setLanguage] = useState<Language>('curl')
  const { origin } = location
  const code =
    'chat' in of ? codeOf({ origin, dialect, language, body: of.chat }) : callCode({ origin, language, call: of.call })
  return (
    <Dialog
      open
      onClose={onClose}
      title="Code of this call"
      size="large"
      text="Put the secret of a token into GATEHOUSE_TOKEN first: the console knows none."
    >
      <div className="row">
        {'chat' in of && (
          <Select
            isCompact
            label="API"
            value={dialect}
            options={[...DIALECTS]}
            onChange={(value) => setDialect(value as Dialect)}
          />
        )}
        <Segments
          label="Language"
          value={language}
          options={LANGUAGES.map((value) => ({ value, label: value }))}
          onChange={(value) => setLanguage(value as Language)}
        />
      </div>
      <Code label={`${language} code`} text={code} />
      <DialogActs>
        <Button onClick={onClose}>Close</Button>
      </DialogActs>
    </Dialog>
  )
}
