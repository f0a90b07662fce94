"""What schemathesis cannot know of the document by itself."""
import schemathesis

# Only some models take these fields. Others ignore them, whatever their value.
MODEL_FIELDS = ("repetition_penalty", "thinking_enabled", "web_search")


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for field in MODEL_FIELDS:
        raw_schema["components"]["schemas"]["ChatRequest"]["properties"].pop(field)
    for path in raw_schema["paths"].values():
        for operation in path.values():
            stream = operation["responses"]["200"].get("content", {}).get("text/event-stream")
            # Here a stream is text. Schemathesis reads it as OpenAPI 3.2 does: the schema is that of one event.
            if stream:
                stream["schema"] = {"type": "object", "properties": {"data": stream["schema"]}, "required": ["data"]}
