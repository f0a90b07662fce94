/** The configuration file as administration sees it: shown with origins, validated, compared, and applied. */
import { resolve } from 'node:path'
import { proposalLimits } from '../check/proposal-limits.ts'
import type { Config } from '../config.ts'
import { DEFAULT_FILE, type Loaded, type LoadParts, loadWithSources, readTextFile } from '../load/load.ts'
import { writeConfigFile } from './apply.ts'
import { changesBetween } from './config-diff.ts'
import { effectiveSettings, type Setting, type SettingChange, settingChanges } from './effective.ts'
import { emptiedSections } from './removals.ts'

export type Proposal = {
  changes: SettingChange[]
  /** Changed settings that take effect only at the next start. */
  needs_restart: string[]
  /**
   * Sections that would be empty: a running gateway does not apply such a file by itself, since it may be truncated, but
   * only on SIGHUP.
   */
  emptied: string[]
}

type AppliedText = Proposal & { written: boolean; backup: string | null }

export type ConfigSource = {
  /** The file, whether or not it exists. */
  path: string
  /** The settings in use with their origins. `running`: the configuration in force. Throws ConfigError. */
  show(running?: Config): Setting[]
  /** Compares a text with the file. Throws ConfigError with the problems of the text; an invalid file counts as empty. */
  diff(text: string): Proposal
  /** The configuration that a text has. Throws ConfigError with the problems of the text. */
  load(text: string): Config
  /**
   * Replaces the file by the text, unless it has the text already; one text after the other. `checked`: what `diff`
   * returned for the text. `assertBase`: called right before, throws where the file is not the one that was edited.
   * Throws ConfigError, and an Error where the file cannot be written; nothing is changed then.
   */
  apply(text: string, checked?: Proposal, assertBase?: () => void): Promise<AppliedText>
}

type SourceParts = Omit<LoadParts, 'readFile' | 'origin' | 'limits'> & {
  /** The texts come by the admin API, and not from an operator with access to the disk. */
  isByApi?: boolean
  /** Of the running gateway. Default: that of the file. */
  data_dir?: string
  /** Throws an Error for what a gateway could not start with, beyond the schema. */
  check?(config: Config): void
}

export function createConfigSource(parts: SourceParts): ConfigSource {
  const { isByApi = false, data_dir, check = () => {}, ...load } = parts
  const { cwd, flags, environment, vendors } = load
  const given = flags?.config ?? environment.GATEHOUSE_CONFIG
  const path = resolve(cwd, given === undefined || given === '' ? DEFAULT_FILE : given)
  const loadText = (text: string, limited: Pick<LoadParts, 'origin' | 'limits'> = {}): Loaded =>
    loadWithSources({ ...load, ...limited, readFile: () => text })

  /** The last text that is written. */
  let last: Promise<unknown> = Promise.resolve()

  /** What holds for a text that comes by the admin API. */
  const limitedBy = (before: Loaded): Pick<LoadParts, 'origin' | 'limits'> => ({
    origin: { from: 'api', present: before.secret_files },
    limits: proposalLimits({
      before,
      config_file: path,
      data_dir: data_dir ?? before.config.data_dir,
      environment,
      vendors,
    }),
  })

  function present(): Loaded {
    try {
      return loadWithSources(load)
    } catch {
      return loadText('')
    }
  }

  function loadProposed(text: string, before: Loaded): Loaded {
    const after = loadText(text, isByApi ? limitedBy(before) : {})
    check(after.config)
    return after
  }

  function diff(text: string): Proposal {
    const before = present()
    const after = loadProposed(text, before)
    return {
      changes: settingChanges(before, after),
      needs_restart: changesBetween(before.config, after.config).needs_restart,
      emptied: emptiedSections(before.config, after.config),
    }
  }

  return {
    path,
    show: (running) => effectiveSettings(load, running),
    diff,
    load: (text) => loadProposed(text, present()).config,
    apply(text, checked, assertBase = () => {}) {
      const applied = last.then(async () => {
        const proposal = checked ?? diff(text)
        assertBase()
        if (readTextFile(path) === text) return { ...proposal, written: false, backup: null }
        const { backup } = await writeConfigFile(path, text)
        return { ...proposal, written: true, backup: backup ?? null }
      })
      last = applied.catch(() => {})
      return applied
    },
  }
}
