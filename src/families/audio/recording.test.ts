import { describe, expect, test } from 'bun:test'
import { FORM_MARGIN, recordingOf } from './recording.ts'

/** Audio within the memory of a request. */
const received = (bytes: number[], margin = FORM_MARGIN) => {
  const memory = new Uint8Array(bytes.length + 2 * margin)
  memory.set(bytes, margin)
  return memory.subarray(margin, margin + bytes.length)
}
const recording = (bytes: Uint8Array<ArrayBuffer>, filename = 'a.mp3') =>
  recordingOf({ bytes, content_type: 'audio/mpeg', filename })
const fieldsOf = async ({ bytes, content_type }: { bytes: Uint8Array<ArrayBuffer>; content_type: string }) =>
  new Response(bytes, { headers: { 'content-type': content_type } }).formData()

describe('the form of a recording', () => {
  test('is written into the memory of the request', () => {
    const bytes = received([0xff, 0xf3, 1, 2])
    const form = recording(bytes).form([['model', 'm']])
    expect(form.bytes.buffer).toBe(bytes.buffer)
  })

  test('is the same for each target, however often it is written', async () => {
    const own = recording(received([0xff, 0xf3, 1, 2]))
    own.form([['model', 'a-long-name'.repeat(100)]])
    const form = await fieldsOf(
      own.form([
        ['model', 'm'],
        ['include[]', 'x'],
        ['include[]', 'y'],
      ]),
    )
    expect(form.getAll('include[]')).toEqual(['x', 'y'])
    expect(form.get('model')).toBe('m')
    const file = form.get('file') as File
    expect([file.name, [...(await file.bytes())]]).toEqual(['a.mp3', [0xff, 0xf3, 1, 2]])
  })

  test.each([0, 10, FORM_MARGIN])('holds large fields beside a margin of %d bytes', async (margin) => {
    const form = recording(received([0xff, 0xf3, 9], margin)).form([['prompt', 'x'.repeat(FORM_MARGIN)]])
    const parsed = await fieldsOf(form)
    expect(String(parsed.get('prompt')).length).toBe(FORM_MARGIN)
    expect([...(await (parsed.get('file') as File).bytes())]).toEqual([0xff, 0xf3, 9])
  })

  test('has no field or header that a name could add', async () => {
    const form = recording(received([0xff, 0xf3, 9]), 'a"\r\nx: y\r\n\r\n.mp3').form([['model', 'm']])
    const parsed = await fieldsOf(form)
    expect([...parsed.keys()]).toEqual(['file', 'model'])
  })
})
