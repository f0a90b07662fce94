/** Shows a conversation as code that makes the same call. */
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Code } from '../../ui/display.tsx'
import { Select } from '../../ui/select.tsx'
import { Segments } from '../../ui/tabs.tsx'
import type { Body } from './chat-body.ts'
import { codeOf, LANGUAGES, type Language } from './code-text.ts'
import { DIALECTS, type Dialect } from './dialects.ts'

export function CodeDialog({ body, onClose }: { body: Body; onClose(): void }) {
  const [dialect, setDialect] = useState<Dialect>('chatcompat')
  const [language, setLanguage] = useState<Language>('curl')
  return (
    <Dialog
      open
      onClose={onClose}
      title="Code of this call"
      size="large"
      text="Put the secret of a token into GATEHOUSE_TOKEN first: the console knows none."
    >
      <div className="row">
        <Select
          isCompact
          label="API"
          value={dialect}
          options={[...DIALECTS]}
          onChange={(value) => setDialect(value as Dialect)}
        />
        <Segments
          label="Language"
          value={language}
          options={LANGUAGES.map((value) => ({ value, label: value }))}
          onChange={(value) => setLanguage(value as Language)}
        />
      </div>
      <Code label={`${language} code`} text={codeOf({ origin: location.origin, dialect, language, body })} />
      <DialogActs>
        <Button onClick={onClose}>Close</Button>
      </DialogActs>
    </Dialog>
  )
}
