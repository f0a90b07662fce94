/** Writes down what is said in a file of audio, or translates it to English. */
import { useRef, useState } from 'react'
import { bytes, duration } from '../../lib/format.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { CopyButton, Facts } from '../../ui/display.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { useDrop } from './drop.ts'
import { type FamilyProps, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { useCall } from './use-call.ts'

const TASKS = [
  { value: 'transcriptions', label: 'Transcribe' },
  { value: 'translations', label: 'Translate to English' },
]
const TIMES = [
  { value: '', label: 'none' },
  { value: 'segment', label: 'of segments' },
  { value: 'word', label: 'of words' },
]
const LANGUAGE = /^([A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*)?$/

type Piece = { start: number; end: number; text?: string; word?: string }
type Row = Piece & { at: number }
type Transcript = { text: string; language?: string; duration?: number; segments?: Piece[]; words?: Piece[] }

export function Transcription({ model, family, project, onModel }: FamilyProps) {
  const [file, setFile] = useState<File>()
  const [task, setTask] = useState('transcriptions')
  const [times, setTimes] = useState('')
  const [language, setLanguage] = useState('')
  const [prompt, setPrompt] = useState('')
  const { called, error, isRunning, run, stop } = useCall<Transcript>()
  const isTranslation = task === 'translations'
  const chooseTask = (value: string) => {
    setTask(value)
    if (value === 'translations' && times === 'word') setTimes('segment')
  }
  const body = {
    model,
    // Some models have no times: without them all answer.
    response_format: times === '' ? 'json' : 'verbose_json',
    ...(times !== '' && !isTranslation && { timestamp_granularities: [times] }),
    ...(language.trim() && !isTranslation && { language: language.trim() }),
    ...(prompt.trim() && { prompt }),
  }
  const call = { path: `/v1/audio/${task}`, body }
  return (
    <div className="play-order">
      <OrderForm
        act={isTranslation ? 'Translate' : 'Transcribe'}
        call={call}
        isRunning={isRunning}
        problem={problemOf(file, language)}
        error={error}
        onSubmit={() => file && void run({ ...call, project, file })}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <AudioFile file={file} onChange={setFile} />
        <div className="play-pair">
          <Select label="Task" value={task} options={TASKS} onChange={chooseTask} />
          <Select
            label="Times"
            value={times}
            options={isTranslation ? TIMES.filter(({ value }) => value !== 'word') : TIMES}
            onChange={setTimes}
          />
        </div>
        {!isTranslation && (
          <TextField
            label="Language"
            help="Such as en. Empty: it is detected."
            maxLength={35}
            value={language}
            onChange={setLanguage}
          />
        )}
        <TextArea
          label="Prompt"
          help="Names and terms that it may hear, or the text before."
          rows={2}
          maxLength={100_000}
          value={prompt}
          onChange={setPrompt}
        />
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="The text appears here.">
        {called && <TranscriptView transcript={called.data} />}
      </Result>
    </div>
  )
}

type FileProps = { file: File | undefined; onChange(file: File | undefined): void }

function AudioFile({ file, onChange }: FileProps) {
  const picker = useRef<HTMLInputElement>(null)
  const drop = useDrop(([dropped]) => dropped && onChange(dropped))
  return (
    <div className="play-sources stack-small" {...drop}>
      {file && (
        <ul className="play-files" aria-label="Files">
          <li className="play-file">
            <span className="wrap">{file.name}</span>
            <span className="faint small">{bytes(file.size)}</span>
            <IconButton size="small" icon="close" label={`Remove ${file.name}`} onClick={() => onChange(undefined)} />
          </li>
        </ul>
      )}
      <input
        ref={picker}
        type="file"
        accept="audio/*,video/mp4,video/webm"
        hidden
        aria-label="Audio file"
        onChange={(event) => {
          onChange(event.target.files?.[0] ?? file)
          event.target.value = ''
        }}
      />
      <div className="row">
        <Button size="small" icon="plus" onClick={() => picker.current?.click()}>
          {file ? 'Choose another file' : 'Choose an audio file'}
        </Button>
        <span className="small faint">or drop one here</span>
      </div>
    </div>
  )
}

function TranscriptView({ transcript }: { transcript: Transcript }) {
  const { text, language, duration: seconds, segments, words } = transcript
  const pieces = words ?? segments
  const facts: [string, string][] = [
    ...(language === undefined ? [] : [['Language', language] as [string, string]]),
    ...(seconds === undefined ? [] : [['Length', duration(seconds * 1000)] as [string, string]]),
  ]
  return (
    <>
      <div className="play-transcript">
        {text === '' ? <p className="faint">The transcript is empty.</p> : <p className="message-text">{text}</p>}
        <CopyButton text={text} label="Copy the text" />
      </div>
      {facts.length > 0 && <Facts rows={facts} />}
      {pieces && (
        <Table
          label={words ? 'Words' : 'Segments'}
          columns={COLUMNS}
          rows={pieces.map((piece, at) => ({ ...piece, at }))}
          keyOf={({ at }) => `${at}`}
          empty={<p className="state">The model reported no times.</p>}
        />
      )}
    </>
  )
}

const secondsText = (seconds: number): string => `${seconds.toFixed(2)} s`

const COLUMNS: Column<Row>[] = [
  { key: 'text', head: 'Text', cell: ({ text, word }) => <span className="wrap">{word ?? text}</span> },
  { key: 'start', head: 'From', cell: ({ start }) => secondsText(start), isNumber: true },
  { key: 'end', head: 'To', cell: ({ end }) => secondsText(end), isNumber: true },
]

function problemOf(file: File | undefined, language: string): string | undefined {
  if (!file) return 'Choose a file.'
  if (file.size === 0) return 'The file is empty.'
  return LANGUAGE.test(language.trim()) ? undefined : 'The language is a code such as en.'
}
