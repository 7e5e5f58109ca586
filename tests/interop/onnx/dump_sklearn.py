"""Write ONNX models of scikit-learn's converter, with inputs and onnxruntime's outputs.

python dump_sklearn.py FOLDER    (scikit-learn, skl2onnx, onnxruntime)
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 4)).astype("float32")
C = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)
B = (X[:, 0] > 0).astype(int)
IDS = rng.integers(0, 4, (40, 3))
N = np.where(rng.random(X.shape) < 0.2, np.float32("nan"), X)
Y = X @ rng.standard_normal(4) + 0.1 * rng.standard_normal(40)

MODELS = {
    "linear": (LinearRegression(), Y),
    "ridge2": (Ridge(), np.stack([Y, -Y], 1)),
    "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), C),
    "logistic_binary": (LogisticRegression(), B),
    "logistic_text": (LogisticRegression(), np.array(["a", "b", "c"])[C]),
    "sgd": (SGDClassifier(loss="log_loss", max_iter=50), C),
    "linear_svc": (LinearSVC(), C),
    "mlp": (MLPClassifier(hidden_layer_sizes=(5,), max_iter=50), C),
    "mlp_binary": (MLPClassifier(hidden_layer_sizes=(5,), activation="tanh", max_iter=50), B),
    "mlp_regressor": (make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(5, 3), max_iter=50)), Y),
    "pca": (make_pipeline(PCA(2), LogisticRegression()), C),
    "normalizer": (make_pipeline(Normalizer(), LinearRegression()), Y),
    "polynomial": (make_pipeline(PolynomialFeatures(2), LinearRegression()), Y),
    "kmeans": (KMeans(3, n_init=1), None),
    "bayes": (GaussianNB(), C),
    "svc": (SVC(probability=False), C),
    "svr": (SVR(), Y),
    "knn": (KNeighborsClassifier(3), C),
    "tree": (DecisionTreeClassifier(max_depth=3), C),
    "forest": (RandomForestClassifier(4, max_depth=3), C),
    "forest_binary": (RandomForestClassifier(4, max_depth=3), B),
    "forest_regressor": (RandomForestRegressor(4, max_depth=3), Y),
    "boosting": (GradientBoostingRegressor(n_estimators=5, max_depth=2), Y),
    "svc_probabilities": (SVC(probability=True), C),
    "svc_binary": (SVC(kernel="poly", probability=True), B),
    "one_hot": (OneHotEncoder(), None, IDS),
    "one_hot_unknown": (OneHotEncoder(handle_unknown="ignore", drop="first"), None, IDS),
    "one_hot_logistic": (make_pipeline(OneHotEncoder(), LogisticRegression()), C, IDS),
    "ordinal": (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), None, IDS),
    "ordinal_real": (OrdinalEncoder(), None, np.where(IDS == 3, np.nan, IDS / 2).astype("float32")),
    "imputer": (SimpleImputer(strategy="median"), None, N),
    "imputer_svc": (make_pipeline(SimpleImputer(), StandardScaler(), SVC(probability=True)), C, N),
}


def main(folder):
    for name, (model, target, *others) in MODELS.items():
        np.random.seed(0)
        x = others[0] if others else X
        model.fit(x, target)
        options = {} if name in ("logistic", "logistic_text") else {"zipmap": False}
        try:
            made = to_onnx(model, x[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
        except Exception:
            made = to_onnx(model, x[:1], target_opset={"": 17, "ai.onnx.ml": 3})
        file = folder / f"sklearn-{name}.onnx"
        file.write_bytes(made.SerializeToString())
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        fed = x[:7] + 1 if name in ("ordinal", "one_hot_unknown") else x[:7]  # 4 is unknown
        outs = session.run(None, {"X": fed})
        arrays = {"in0": fed}
        for i, out in enumerate(outs):
            if isinstance(out, list):  # ZipMap
                out = np.array([list(row.values()) for row in out], "float32")
            out = np.asarray(out)
            texts = out.dtype.kind in "OU"  # a program gives the positions of such labels
            arrays[f"out{i}"] = np.searchsorted(["a", "b", "c"], out.astype(str)) if texts else out
        np.savez(file.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
