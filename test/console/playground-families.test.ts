/** The playground of the console: images, video, 3D, speech, transcription, embeddings, rerank and moderation. */
import { afterAll, beforeAll, expect, it } from 'bun:test'
import type { Page } from 'playwright-core'
import { speechCost } from '../../console/src/pages/playground/model-limits.ts'
import { similarities } from '../../console/src/pages/playground/similarity.ts'
import { describeInBrowser } from './support/chromium.ts'
import { axeFaults, openConsole, screenshots, type TestConsole } from './support/console.ts'
import { injectedInto } from './support/injected.ts'
import { PAYLOADS } from './support/payloads.ts'
import { expectSoon } from './support/soon.ts'

const WIDE = { width: 1280, height: 900 }
let opened: TestConsole

const result = (page: Page) => page.getByRole('region', { name: 'Result' })

const modelOf = (model: 'speech' | 'transcription') => ({
  families: [`audio-${model}` as const],
  targets: [{ provider: 'sandbox', model }],
})

/** What the sandbox says, as a file. */
async function recording(text: string, name = 'recording.mp3') {
  const json = { model: 'sandbox/speech', input: text, voice: 'tone' }
  const response = await opened.port.gateway.call('/v1/audio/speech', { json })
  return { name, mimeType: 'audio/mpeg', buffer: Buffer.from(await response.arrayBuffer()) }
}

/** A PNG of one pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Drops the dot onto an element, as a browser does with a file of the desktop. */
async function drop(page: Page, selector: string): Promise<void> {
  const transfer = await page.evaluateHandle(async (data) => {
    const blob = await (await fetch(`data:image/png;base64,${data}`)).blob()
    const files = new DataTransfer()
    files.items.add(new File([blob], 'dropped.png', { type: 'image/png' }))
    return files
  }, DOT.toString('base64'))
  for (const type of ['dragenter', 'dragover', 'drop'])
    await page.dispatchEvent(selector, type, { dataTransfer: transfer })
}

/** The pictures and axe of a page with its result. */
async function checked(page: Page, name: string): Promise<void> {
  expect(await axeFaults(page)).toEqual([])
  await screenshots(page, name, [390, 1440, 2560])
  await page.setViewportSize(WIDE)
}

describeInBrowser('the playground', () => {
  beforeAll(async () => {
    const limits = { voices: ['tone', 'bell'], formats: ['wav' as const, 'pcm' as const], characters: 40 }
    const voices = { ...modelOf('speech'), prices: { speech_characters: 1_000 }, speech: limits }
    const transcription = { ...modelOf('transcription'), prices: { audio_minute: 60 } }
    opened = await openConsole({ models: { 'team/voices': voices, 'sandbox/transcription': transcription } })
  })
  afterAll(() => opened?.close())

  it.each(['light', 'dark'] as const)('makes images and edits one of them, %s', async (scheme) => {
    const page = await opened.open('/playground', { scheme })
    await page.getByRole('tab', { name: 'Images' }).click()
    await page.waitForURL('**kind=images*')
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A lighthouse')
    await page.getByRole('combobox', { name: 'Images' }).click()
    await page.getByRole('option', { name: '2' }).click()
    await page.getByRole('button', { name: 'Generate' }).click()
    await page.getByRole('img', { name: 'Image 2 of the model' }).waitFor()
    await checked(page, `playground-images-${scheme}`)
    await page.getByRole('button', { name: 'Edit this' }).first().click()
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A lighthouse at night')
    const [edited] = await Promise.all([
      page.waitForResponse('**/v1/images/edits'),
      page.getByRole('button', { name: 'Edit', exact: true }).click(),
    ])
    expect(edited.status()).toBe(200)
    await page.getByRole('button', { name: 'Remove image-1.png' }).click()
    await page.getByRole('button', { name: 'Generate' }).waitFor()
  })

  it.each(['light', 'dark'] as const)('marks by pointer and by keyboard what an edit changes, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=images', { scheme })
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A lighthouse')
    await page.getByRole('button', { name: 'Generate' }).click()
    await page.getByRole('button', { name: 'Edit this' }).first().click()
    await page.getByRole('button', { name: 'Mark what changes' }).click()
    const canvas = page.getByRole('application')
    // The canvas has the place of the image, which has a size once it is read.
    await expectSoon(() => page.locator('.mask img').evaluate((img: HTMLImageElement) => img.complete), true)
    const { x, y, width, height } = (await canvas.boundingBox()) as {
      x: number
      y: number
      width: number
      height: number
    }
    await page.mouse.move(x + width / 4, y + height / 4)
    await page.mouse.down()
    await page.mouse.move(x + width / 2, y + height / 4, { steps: 4 })
    await page.mouse.up()
    await page.getByText('1 marked').waitFor()
    await canvas.focus()
    await page.keyboard.press('Shift+ArrowDown')
    await page.keyboard.press('Space')
    await page.getByText('2 marked').waitFor()
    await checked(page, `playground-mask-${scheme}`)
    await page.getByRole('button', { name: 'Use this mask' }).click()
    const [edited] = await Promise.all([
      page.waitForRequest('**/v1/images/edits'),
      page.getByRole('button', { name: 'Edit', exact: true }).click(),
    ])
    const { mask, image } = edited.postDataJSON() as { mask: string; image: string }
    // The middle of the stroke and the dot are transparent, a corner is not; the mask has the size of the image.
    const seen = await page.evaluate(
      async ([mask, image]) => {
        const [drawn, source] = await Promise.all(
          [mask, image].map(async (address) => createImageBitmap(await (await fetch(address ?? '')).blob())),
        )
        const context = new OffscreenCanvas(drawn?.width ?? 0, drawn?.height ?? 0).getContext('2d')
        if (!context || !drawn || !source) return undefined
        context.drawImage(drawn, 0, 0)
        const alpha = (x: number, y: number) => context.getImageData(x, y, 1, 1).data[3]
        const marked = alpha(Math.round(drawn.width * 0.4), Math.round(drawn.height / 4))
        return {
          marked,
          dot: alpha(drawn.width / 2, Math.round(drawn.height / 2 + drawn.width / 10)),
          corner: alpha(1, 1),
          isSameSize: drawn.width === source.width && drawn.height === source.height,
        }
      },
      [mask, image] as const,
    )
    expect(seen).toEqual({ marked: 0, dot: 0, corner: 255, isSameSize: true })
    await result(page).getByRole('img').first().waitFor()
  })

  it('takes a mask from a file, if it has the size of the image', async () => {
    const page = await opened.open('/playground?kind=images')
    await page.getByLabel('Add an image to edit').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: DOT })
    await page.getByRole('button', { name: 'Mark what changes' }).click()
    const upload = page.getByLabel('Mask file')
    await upload.setInputFiles('docs/manual/images/console-home.png')
    await page.getByRole('region', { name: 'Notifications' }).getByText('those of the image: 1 × 1').waitFor()
    await upload.setInputFiles({ name: 'mask.png', mimeType: 'image/png', buffer: DOT })
    await page.getByRole('button', { name: 'Remove mask.png' }).waitFor()
    await page.getByRole('button', { name: 'Remove a.png' }).click()
    await page.getByRole('button', { name: 'Remove mask.png' }).waitFor({ state: 'detached' })
  })

  it('takes images that are dropped', async () => {
    const page = await opened.open('/playground?kind=images')
    await drop(page, '.play-sources')
    await page.getByRole('button', { name: 'Remove dropped.png' }).waitFor()
    await page.getByRole('tab', { name: 'Chat' }).click()
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await drop(page, '.playground-main')
    await page.getByRole('button', { name: 'Remove dropped.png' }).waitFor()
  })

  it.each([
    ['images', 'Prompt', 'client.images.generate('],
    ['video', 'Prompt', '/v1/video/generations'],
    ['3d', 'Prompt', '/v1/3d/generations'],
    ['speech', 'Text', 'client.audio.speech.create('],
    ['embeddings', 'Texts', 'client.embeddings.create('],
    ['rerank', 'Query', '/v1/rerank'],
    ['moderation', 'Text', 'client.moderations.create('],
  ])('writes the call of %s as code', async (kind, field, code) => {
    const page = await opened.open(`/playground?kind=${kind}`)
    await page.getByRole('textbox', { name: field, exact: true }).fill('a gate')
    await page.getByRole('button', { name: 'Code' }).click()
    await page.getByRole('dialog').getByText('TypeScript').click()
    await page.getByRole('dialog').locator('pre', { hasText: code }).waitFor()
  })

  it.each(['light', 'dark'] as const)('speaks a text, plays it and offers the file, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=speech&model=team/voices', { scheme })
    await page.getByRole('button', { name: 'Speak' }).and(page.locator(':disabled')).waitFor()
    await page.getByRole('textbox', { name: 'Text' }).fill('Good morning.')
    await page.getByRole('combobox', { name: 'Voice' }).click()
    await page.getByRole('option', { name: 'bell' }).click()
    await page.getByRole('textbox', { name: 'Speed' }).fill('1.5')
    await page.getByRole('textbox', { name: 'Instructions' }).fill('Calm.')
    const [sent] = await Promise.all([
      page.waitForRequest('**/playground/v1/audio/speech'),
      page.getByRole('button', { name: 'Speak' }).click(),
    ])
    expect(sent.postDataJSON()).toMatchObject({
      voice: 'bell',
      speed: 1.5,
      instructions: 'Calm.',
      response_format: 'wav',
    })
    expect(sent.headers().authorization).toBeUndefined()
    const player = page.locator('audio')
    await player.waitFor()
    await expectSoon(
      () => player.evaluate((audio: HTMLAudioElement) => audio.readyState >= 1 && audio.duration > 0),
      true,
    )
    await result(page).getByText('$0.013').waitFor()
    await checked(page, `playground-speech-${scheme}`)
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ])
    expect(file.suggestedFilename()).toBe('speech.wav')
  })

  it('says what a text to speak may not be, and what went wrong', async () => {
    const page = await opened.open('/playground?kind=speech&model=team/voices', { allowed: /speech 429/ })
    const text = page.getByRole('textbox', { name: 'Text' })
    await text.fill('a'.repeat(41))
    await page.getByText('At most 40 characters; there are 41.').waitFor()
    await text.fill('a'.repeat(40))
    await page.getByRole('textbox', { name: 'Speed' }).fill('4.1')
    await page.getByText('a number from 0.25 to 4').waitFor()
    await page.getByRole('textbox', { name: 'Speed' }).fill('4')
    await page.getByRole('combobox', { name: 'Format' }).click()
    await page.getByRole('option', { name: 'pcm' }).click()
    await page.getByRole('button', { name: 'Speak' }).click()
    await result(page).getByText('does not play pcm').waitFor()
    await text.fill('@sandbox status=429\nHi')
    await page.getByRole('button', { name: 'Speak' }).click()
    await page.getByRole('alert').waitFor()
  })

  it.each(['light', 'dark'] as const)('transcribes a file with the times of its segments, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=transcription', { scheme })
    await page.getByRole('button', { name: 'Transcribe' }).and(page.locator(':disabled')).waitFor()
    await page.getByLabel('Audio file').setInputFiles(await recording('Good morning. The gate is open.'))
    await page.getByRole('combobox', { name: 'Times' }).click()
    await page.getByRole('option', { name: 'of segments' }).click()
    await page.getByRole('button', { name: 'Transcribe' }).click()
    await result(page).getByText('Good morning. The gate is open.', { exact: true }).waitFor()
    await expectSoon(() => result(page).locator('tbody tr').count(), 2)
    await result(page).getByText('english').waitFor()
    await result(page).getByText(/^\$\d/).waitFor()
    await checked(page, `playground-transcription-${scheme}`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy the text' }).click()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('Good morning. The gate is open.')
  })

  it('transcribes words by keyboard, translates, and writes both as code', async () => {
    const page = await opened.open('/playground?kind=transcription')
    await page.getByLabel('Audio file').setInputFiles(await recording('The gate is open.'))
    await page.getByRole('combobox', { name: 'Times' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('option', { name: 'of words' }).waitFor()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Language' }).focus()
    await page.keyboard.type('en')
    await page.keyboard.press('Enter')
    await expectSoon(() => result(page).locator('tbody tr').count(), 4)
    await page.getByRole('button', { name: 'Code' }).click()
    await page.getByText('timestamp_granularities[]=word').waitFor()
    await page.getByRole('dialog').getByText('Python', { exact: true }).click()
    await page.getByRole('dialog').locator('pre', { hasText: 'client.audio.transcriptions.create(' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', { name: 'Task' }).click()
    await page.getByRole('option', { name: 'Translate' }).click()
    const [translated] = await Promise.all([
      page.waitForResponse('**/v1/audio/translations'),
      page.getByRole('button', { name: 'Translate' }).click(),
    ])
    expect(translated.status()).toBe(200)
    await page.getByRole('button', { name: 'Remove recording.mp3' }).click()
    await page.getByText('Choose a file.').waitFor()
  })

  it('shows a transcript and the name of its file as text, whatever they are', async () => {
    const page = await opened.open('/playground?kind=transcription', { allowed: /transcriptions 400/ })
    const said = PAYLOADS.join(' ')
    const name = `${(PAYLOADS[1] ?? '').replaceAll('/', '')}.mp3`
    await page.getByLabel('Audio file').setInputFiles(await recording(said, name))
    await page.getByRole('combobox', { name: 'Times' }).click()
    await page.getByRole('option', { name: 'of words' }).click()
    await page.getByRole('button', { name: 'Transcribe' }).click()
    await result(page).getByText(said, { exact: true }).waitFor()
    expect(await injectedInto(page)).toEqual([])
    await page.getByLabel('Audio file').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: DOT })
    await page.getByRole('button', { name: 'Transcribe' }).click()
    await page.getByRole('alert').getByText('is image/png, not audio').waitFor()
  })

  it.each(['light', 'dark'] as const)('compares texts by their embeddings, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=embeddings', { scheme })
    await page.getByRole('textbox', { name: 'Texts' }).fill('a gate\na gate\nsomething else')
    await page.getByRole('button', { name: 'Embed' }).click()
    await page.getByRole('region', { name: 'Similarities' }).waitFor()
    const cells = await page.locator('.matrix tbody td').allTextContents()
    expect([cells.length, cells[1]]).toEqual([9, '1.00'])
    await checked(page, `playground-embeddings-${scheme}`)
  })

  it.each(['light', 'dark'] as const)('sorts documents by keyboard alone, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=rerank', { scheme })
    await page.getByRole('textbox', { name: 'Query' }).focus()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('guard gate castle')
    await page.keyboard.press('Enter')
    await result(page).locator('li').nth(2).waitFor()
    expect(await result(page).locator('li').first().textContent()).toContain('A gatehouse guards the gate')
    await checked(page, `playground-rerank-${scheme}`)
  })

  it.each(['light', 'dark'] as const)('shows what a moderation model finds, %s', async (scheme) => {
    const page = await opened.open('/playground?kind=moderation', { scheme })
    await page.getByRole('textbox', { name: 'Text' }).fill('I will kill you <img src=x onerror=alert(1)>')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('flagged', { exact: true }).waitFor()
    await checked(page, `playground-moderation-${scheme}`)
  })

  it('makes a video, shows its progress, and plays it; the address has the task', async () => {
    const page = await opened.open('/playground?kind=video')
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A river.\n@sandbox quick=1')
    await page.getByRole('button', { name: 'Generate' }).click()
    await page.waitForURL('**task=task_*')
    await page.locator('video').waitFor()
    await page.waitForFunction(() => (document.querySelector('video')?.readyState ?? 0) >= 1)
    await checked(page, 'playground-video')
    await page.reload()
    await page.locator('video').waitFor()
  })

  it('cancels a video, and says why a task failed', async () => {
    const page = await opened.open('/playground?kind=video')
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A river.\n@sandbox queue_ms=600000')
    await page.getByRole('button', { name: 'Generate' }).click()
    await page.getByRole('meter', { name: 'Progress' }).waitFor()
    await checked(page, 'playground-progress')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('alert').getByText('canceled').first().waitFor()
  })

  it('makes a 3D model, and shows it', async () => {
    const page = await opened.open('/playground?kind=3d')
    await page.getByRole('textbox', { name: 'Prompt' }).fill('A chair.\n@sandbox quick=1')
    await page.getByRole('button', { name: 'Generate' }).click()
    await page.locator('.viewer canvas').waitFor()
    await page.locator('.viewer').focus()
    await page.keyboard.press('ArrowRight')
    await checked(page, 'playground-3d')
  })

  it('opens the kind of the model that the address names, and shows the error of a call', async () => {
    const page = await opened.open('/playground?model=sandbox/moderation', { allowed: /moderations 429/ })
    await page.getByRole('tab', { name: 'Moderation', selected: true }).waitFor()
    await page.getByRole('textbox', { name: 'Text' }).fill('a\n@sandbox status=429')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByRole('alert').waitFor()
  })
})

it('similarities are cosines, and 0 where a vector has no length', () => {
  expect(
    similarities([
      [3, 4],
      [6, 8],
      [0, 0],
    ]),
  ).toEqual([
    [1, 1, 0],
    [1, 1, 0],
    [0, 0, 0],
  ])
})

it('speech costs its characters, its tokens or both, and nothing is said where no price is known', () => {
  const units = { characters: 1_000, input_tokens: 200, output_tokens: 4_000 }
  const none = { speech_characters: null, input: null, output_audio: null, request: null }
  const cost = (price: object) => speechCost(units, { ...none, ...price } as never)
  expect([
    cost({ speech_characters: 15 }),
    cost({ input: 1, output_audio: 10 }),
    cost({ speech_characters: 15, input: 1, output_audio: 10, request: 1 }),
    cost({ input: 1 }),
    speechCost(units, null),
  ]).toEqual([0.015, 0.0402, 1.0552, null, null])
})
