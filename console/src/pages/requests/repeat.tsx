/** Shows the command that makes a request again. */
import { useState } from 'react'
import type { Request, RequestContents } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Code } from '../../ui/display.tsx'
import { curlOf } from './curl.ts'

type CurlProps = { request: Request; contents: RequestContents | undefined }

export function CurlButton({ request, contents }: CurlProps) {
  const [isOpen, setOpen] = useState(false)
  if (!request.path) return null
  return (
    <>
      <Button icon="copy" onClick={() => setOpen(true)}>
        Copy as curl
      </Button>
      <Dialog
        open={isOpen}
        onClose={() => setOpen(false)}
        title="Make this request again"
        size="large"
        text={
          contents
            ? 'With the messages that are stored. Put a token into GATEHOUSE_TOKEN first: the console knows no secret.'
            : 'The log has no messages unless they are stored and shown: fill them in. Put a token into GATEHOUSE_TOKEN first.'
        }
      >
        <Code label="command" text={curlOf(request, location.origin, contents?.input)} />
        <DialogActs>
          <Button onClick={() => setOpen(false)}>Close</Button>
        </DialogActs>
      </Dialog>
    </>
  )
}
