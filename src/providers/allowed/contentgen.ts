/**
 * The fields of a contentgen request that reach no other model and nothing in the operator's account. Source: the types
 * of `@google/genai` 3.1.0, `dist/genai.d.ts`. Names are in camel case; snake case matches too. Not on the list:
 * `routingConfig`, `modelSelectionConfig` and `retrieval`, which name models; `cachedContent`, `fileSearch`, the account's
 * voices, and templates, which name things in the operator's account.
 */
import { all, type ObjectShape, plain } from '../../kit/allow-list.ts'
import { FILE_URL } from './media-url.ts'

const blob = plain('data', 'mimeType', 'displayName')
const file: ObjectShape = { members: { ...all('value', 'mimeType', 'displayName'), fileUri: FILE_URL } }

const part: ObjectShape = {
  members: {
    ...all('value', 'text', 'thought', 'thoughtSignature'),
    inlineData: blob,
    fileData: file,
    functionCall: {
      members: { ...all('value', 'id', 'name', 'willContinue'), args: 'data', partialArgs: 'data' },
    },
    functionResponse: {
      members: {
        ...all('value', 'id', 'name', 'willContinue', 'scheduling'),
        response: 'data',
        parts: { members: { inlineData: blob, fileData: file } },
      },
    },
    toolCall: { members: { ...all('value', 'id', 'toolType'), args: 'data' } },
    toolResponse: { members: { ...all('value', 'id', 'toolType'), response: 'data' } },
    executableCode: plain('id', 'code', 'language'),
    codeExecutionResult: plain('id', 'outcome', 'output'),
    videoMetadata: plain('startOffset', 'endOffset', 'fps'),
    mediaResolution: plain('level', 'numTokens'),
    partMetadata: 'data',
  },
}
const content: ObjectShape = { members: { role: 'value', parts: part } }

const voice: ObjectShape = { members: { prebuiltVoiceConfig: plain('voiceName') } }
const speechSettings: ObjectShape = {
  members: {
    languageCode: 'value',
    voiceConfig: voice,
    multiSpeakerVoiceConfig: {
      members: { speakerVoiceConfigs: { members: { speaker: 'value', voiceConfig: voice } } },
    },
  },
}

const generation: ObjectShape = {
  members: {
    ...all('value', 'temperature', 'topP', 'topK', 'candidateCount', 'maxOutputTokens', 'stopSequences', 'seed'),
    ...all('value', 'presencePenalty', 'frequencyPenalty', 'responseLogprobs', 'logprobs', 'responseMimeType'),
    ...all('value', 'responseModalities', 'mediaResolution', 'audioTimestamp', 'enableEnhancedCivicAnswers'),
    ...all('value', 'enableAffectiveDialog'),
    ...all('data', 'responseSchema', 'responseJsonSchema'),
    thinkingConfig: plain('includeThoughts', 'thinkingBudget', 'thinkingLevel'),
    speechConfig: speechSettings,
    imageConfig: plain(
      ...['aspectRatio', 'imageSize', 'personGeneration', 'outputMimeType', 'outputCompressionQuality'],
      'prominentPeople',
    ),
    translationConfig: plain('echoTargetLanguage', 'targetLanguageCode'),
  },
}

const search = plain('blockingConfidence', 'excludeDomains')
const tool: ObjectShape = {
  members: {
    functionDeclarations: {
      members: {
        ...all('value', 'name', 'description', 'behavior'),
        ...all('data', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema'),
      },
    },
    googleSearch: {
      members: {
        ...all('value', 'blockingConfidence', 'excludeDomains'),
        searchTypes: { others: { members: {} } },
        timeRangeFilter: plain('startTime', 'endTime'),
      },
    },
    googleSearchRetrieval: { members: { dynamicRetrievalConfig: plain('mode', 'dynamicThreshold') } },
    enterpriseWebSearch: search,
    googleMaps: plain('enableWidget'),
    codeExecution: { members: {} },
    urlContext: { members: {} },
    computerUse: plain('environment', 'excludedPredefinedFunctions', 'enablePromptInjectionDetection'),
  },
}

export const CONTENTGEN: ObjectShape = {
  members: {
    contents: content,
    systemInstruction: content,
    generationConfig: generation,
    tools: tool,
    toolConfig: {
      members: {
        includeServerSideToolInvocations: 'value',
        functionCallingConfig: plain('mode', 'allowedFunctionNames', 'streamFunctionCallArguments'),
        retrievalConfig: { members: { languageCode: 'value', latLng: plain('latitude', 'longitude') } },
      },
    },
    safetySettings: plain('category', 'method', 'threshold'),
    labels: { others: 'value' },
    serviceTier: 'value',
    store: 'value',
  },
}
